/* SPDX-License-Identifier: BSD-2-Clause
 * Which blocks are looked at, how often, how much may move, when DRAM's bandwidth is relieved,
 * and when the share of DRAM has changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pages/rules/balance.h"
#include "pages/rules/coverage.h"
#include "pages/rules/pace.h"
#include "pages/rules/share.h"

#define MS 1000000ull
#define S  1000000000ull

/* --- coverage ------------------------------------------------------------------ */

static void a_cycle_takes_every_block_once(void **state)
{
    static uint8_t count[5000];
    (void)state;
    for (uint64_t blocks = 1; blocks < 5000; blocks = blocks * 3 / 2 + 1) {
        struct coverage c;
        coverage_init(&c, blocks);
        for (unsigned cycle = 0; cycle < 3; cycle++) {
            memset(count, 0, sizeof(count));
            for (uint64_t i = 0; i < blocks; i++)
                count[coverage_next(&c, blocks)]++;
            for (uint64_t i = 0; i < blocks; i++)
                assert_int_equal(count[i], 1);
        }
    }
}

static void no_block_waits_long_in_a_changing_footprint(void **state)
{
    static unsigned last[4000];
    struct coverage c;
    uint64_t random = 3, blocks = 2000;
    (void)state;
    coverage_init(&c, 1);
    for (unsigned i = 0; i < 200000; i++) {
        if (i % 500 == 0)
            blocks = 1500 + random_next(&random) % 1000;
        uint64_t b = coverage_next(&c, blocks);
        assert_true(b < blocks);
        last[b] = i;
        for (unsigned k = 0; i % 1000 == 999 && i > 10000 && k < 1500; k++)
            assert_true(i - last[k] <= 2 * 2500);
    }
    /* the footprint all but vanishes: at once only what is left */
    for (unsigned i = 0; i < 100; i++)
        assert_true(coverage_next(&c, 3) < 3);
}

static void a_share_of_a_large_footprint(void **state)
{
    const uint64_t blocks = 64 * HY_GIB / (2 * HY_MIB);
    (void)state;
    assert_int_equal(coverage_share(0, 1000, S), 0);
    assert_int_equal(coverage_share(COVERAGE_ALL, 1000, 1), COVERAGE_ALL);
    assert_int_equal(coverage_share(blocks, 1, S), blocks * 15 / 100);
    assert_int_equal(coverage_share(blocks, MS, S), blocks * 5 / 100);
    assert_int_equal(coverage_share(blocks, MS, 3000 * S / 1000), 3000);
    assert_int_equal(coverage_share(blocks, 0, 0), blocks * 15 / 100);
    for (uint64_t b = 1; b < 3000; b++) {
        uint64_t n = coverage_share(b, 5000, 1000000);
        assert_true(n >= 1 && n <= b);
    }
}

/* --- pace ---------------------------------------------------------------------- */

static const struct pace_limits limits = {.interval_min = 100 * MS,
                                          .interval_max = 20 * S,
                                          .bytes_per_s = 400 * HY_MIB,
                                          .core_permille = 50};

static void the_interval_adapts(void **state)
{
    struct pace p;
    (void)state;
    pace_init(&p, &limits);
    assert_int_equal(p.interval, 100 * MS);
    for (int i = 0; i < 30; i++)
        pace_pass(&p, 10000, 0);
    assert_int_equal(p.interval, 20 * S);
    pace_pass(&p, 10000, 500); /* in between: stays */
    assert_int_equal(p.interval, 20 * S);
    for (int i = 0; i < 3; i++)
        pace_pass(&p, 10000, 5000);
    assert_true(p.interval <= 3 * S);
    for (int i = 0; i < 10; i++)
        pace_pass(&p, 10000, 5000);
    assert_int_equal(p.interval, 100 * MS);
    pace_pass(&p, 0, 0); /* nothing to look at: rarely */
    assert_true(p.interval > 100 * MS);
}

static void hurry_is_short(void **state)
{
    struct pace p;
    (void)state;
    pace_init(&p, &limits);
    for (int i = 0; i < 30; i++)
        pace_pass(&p, 10000, 0);
    for (int wakes = 0; wakes < 2; wakes++) {
        if (wakes)
            pace_wake(&p);
        else
            pace_hurry(&p);
        for (int i = 0; i < 4; i++, pace_pass(&p, 10000, 0))
            assert_int_equal(p.interval, 100 * MS);
        for (int i = 0; i < 30; i++)
            pace_pass(&p, 10000, 0);
        assert_int_equal(p.interval, 20 * S); /* and no longer */
    }
}

/* A trial that fails makes the next one smaller, one that pays lifts the bounds. */
static void trials_are_small(void **state)
{
    struct pace p;
    uint64_t clear, swaps;
    (void)state;
    pace_init(&p, &limits);
    clear = pace_clear(&p, 3200);
    swaps = pace_swaps(&p, 3200);
    assert_int_equal(clear, 100);
    assert_int_equal(swaps, 50);
    for (int i = 0; i < 3; i++) {
        pace_result(&p, 0, 30000, 10, 0);
        assert_int_equal(pace_clear(&p, 3200), clear /= 2);
        assert_int_equal(pace_swaps(&p, 3200), swaps /= 2);
    }
    pace_result(&p, 0, 30000, 10, 0);
    assert_int_equal(pace_clear(&p, 3200), clear); /* but not to nothing */
    pace_result(&p, 30000, 30000, 10, 0);
    assert_true(pace_clear(&p, 3200) > 3200 && pace_swaps(&p, 3200) == 200);
}

/* Whatever is asked for, over any time the rates are kept. */
static void the_rates_are_kept(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (unsigned run = 0; run < 50; run++) {
        struct pace p;
        uint64_t page_ns = 500 + random_next(&random) % 20000, bytes = 0, time = 0, elapsed = 0;
        pace_init(&p, &limits);
        for (unsigned i = 0; i < 400; i++) {
            uint64_t dt = random_next(&random) % (200 * MS), look = random_next(&random) % MS;
            pace_elapsed(&p, dt, look);
            elapsed += dt;
            time += look;
            uint64_t wanted = random_next(&random) % 100000, n = HY_MIN(pace_moves(&p), wanted);
            pace_moved(&p, n, n * page_ns);
            bytes += n * HY_PAGE;
            time += n * page_ns;
        }
        assert_true((double)bytes <= 400.0 * HY_MIB * (double)elapsed / 1e9 * 1.01);
        /* the price of a page is learnt: a little over at first */
        assert_true((double)time <= 0.05 * (double)elapsed * 1.1 + 400.0 * MS * 0.05);
        assert_true(bytes > 0);
    }
}

static void a_long_sleep_saves_nothing_up(void **state)
{
    struct pace p;
    (void)state;
    pace_init(&p, &limits);
    pace_elapsed(&p, 3600 * S, 0);
    assert_true(pace_moves(&p) * HY_PAGE <= 40 * HY_MIB); /* of one interval */
    pace_elapsed(&p, S, 3600 * S);                        /* looking took long */
    assert_int_equal(pace_moves(&p), 0);
}

static void filling_free_dram_owes_bytes_only(void **state)
{
    struct pace p;
    (void)state;
    pace_init(&p, &limits);
    assert_int_equal(pace_fill(&p), 0);
    pace_elapsed(&p, S / 10, S); /* a look took all of the core's share */
    assert_int_equal(pace_moves(&p), 0);
    uint64_t n = pace_fill(&p);
    assert_true(n > 0 && n * HY_PAGE <= 40 * HY_MIB);
    pace_filled(&p, n + 1);
    assert_int_equal(pace_fill(&p), 0);
}

static void moves_that_do_not_pay_pause(void **state)
{
    struct pace p;
    unsigned tried = 0;
    (void)state;
    pace_init(&p, &limits);
    for (unsigned pass = 0; pass < 1000; pass++) {
        pace_elapsed(&p, S, 0);
        pace_pass(&p, 1000, 900);
        if (pace_moves(&p) > 0) {
            tried++;
            pace_moved(&p, 10, 30000);
            pace_result(&p, -5, 30000, 10, 0);
        }
    }
    assert_true(tried >= 10 && tried <= 30); /* it goes on trying, but seldom */
    p.pause = 0;
    pace_result(&p, 100000, 30000, 10, 0); /* now it pays */
    assert_int_equal(p.worthless, 0);
    pace_elapsed(&p, S, 0);
    assert_true(pace_moves(&p) > 0);
    pace_result(&p, 1000000, 30000, 100, 60); /* gains, but what went has to come back */
    pace_result(&p, 1000000, 30000, 100, 60);
    assert_int_equal(pace_moves(&p), 0);
}

/* As others undo moves: whatever the program does, and free DRAM is not filled either. */
static void a_truce_is_kept(void **state)
{
    struct pace p;
    (void)state;
    pace_init(&p, &limits);
    pace_elapsed(&p, S, 0);
    assert_true(pace_moves(&p) > 0 && pace_fill(&p) > 0 && !pace_paused(&p));
    pace_truce(&p, 3);
    pace_truce(&p, 2); /* not shorter */
    for (int i = 0; i < 3; i++) {
        assert_true(pace_paused(&p));
        assert_int_equal(pace_moves(&p), 0);
        assert_int_equal(pace_fill(&p), 0);
        assert_true(pace_owed(&p) > 0);
        pace_wake(&p);
        pace_pass(&p, 1000, 900);
    }
    assert_false(pace_paused(&p));
    assert_true(pace_moves(&p) > 0 && pace_fill(&p) > 0);
}

/* --- balance --------------------------------------------------------------------- */

/* A machine whose DRAM delivers `cap`; the program asks for `want`, a share of which lies on
 * DRAM in proportion to its hot pages. */
static void sheds_until_use_drops(void **state)
{
    struct balance b = {0};
    double hot = 10000, all = 10000, want = 1.3;
    unsigned windows;
    (void)state;
    for (windows = 0; windows < 100 && b.state != BALANCE_HOLD; windows++) {
        balance_window(&b, HY_MIN(1.0, want * hot / all), (uint64_t)hot);
        hot -= (double)b.step;
    }
    assert_int_equal(b.state, BALANCE_HOLD);
    assert_int_equal(b.step, 0);
    /* It stops where DRAM is no longer full, not far below. */
    double use = want * hot / all;
    assert_true(use < 1 && use > 0.7);
    assert_int_equal(b.total, (uint64_t)(all - hot));
    for (int i = 0; i < 20; i++) {
        balance_window(&b, 0.85, (uint64_t)hot); /* between: neither more nor back */
        assert_int_equal(b.state, BALANCE_HOLD);
        assert_int_equal(b.step, 0);
    }
    balance_window(&b, 0.3, (uint64_t)hot);
    assert_int_equal(b.state, BALANCE_OFF);
}

static void balance_needs_proof(void **state)
{
    struct balance b = {0};
    (void)state;
    balance_window(&b, 0.99, 1000);
    assert_int_equal(b.step, 0);
    balance_window(&b, 0.5, 1000);
    balance_window(&b, 0.99, 1000);
    assert_int_equal(b.step, 0);
    balance_window(&b, 0.99, 1000);
    assert_true(b.step > 0);
    balance_window(&b, -1, 1000); /* the counters are gone */
    assert_int_equal(b.state, BALANCE_OFF);
    assert_int_equal(b.step, 0);
    b = (struct balance){0};
    for (int i = 0; i < 5; i++)
        balance_window(&b, 1.0, 0); /* nothing to give */
    assert_int_equal(b.step, 0);
}

/* --- the share of DRAM ----------------------------------------------------------- */

static void what_others_leave_is_filled(void **state)
{
    struct share s = {0};
    (void)state;
    assert_true(share_grows(&s, 1000)); /* the first one */
    assert_false(share_grows(&s, 1000));
    s.filled = true;
    assert_false(share_grows(&s, 1010)); /* as allocations come and go */
    assert_true(s.filled);
    assert_true(share_grows(&s, 1100));
    assert_false(s.filled);
    s.filled = true;
    /* What it has lost and gets again is more than it had. */
    assert_false(share_grows(&s, 500));
    assert_true(s.filled);
    assert_true(share_grows(&s, 600));
    assert_false(s.filled);
    /* Little by little: nothing is forgotten. */
    s.filled = true;
    unsigned times = 0;
    for (uint64_t share = 600; share <= 1200; share++)
        if (share_grows(&s, share)) {
            times++;
            s.filled = true;
        }
    assert_in_range(times, 20, 60);
}

/* An exchange while the program still touches new pages would make room for those. */
static void exchanges_wait_until_memory_has_come(void **state)
{
    struct share s = {0};
    (void)state;
    assert_int_equal(share_growth(&s, 100), 100);
    assert_int_equal(share_growth(&s, 101), 1);
    assert_int_equal(share_growth(&s, 101), 0);
    assert_int_equal(share_growth(&s, 60), 0); /* temporaries have gone */
    assert_int_equal(share_growth(&s, 101), 0);
    assert_int_equal(share_growth(&s, 103), 2);

    assert_int_equal(share_swaps(30, 300), 0);
    assert_int_equal(share_swaps(30, 15), 0); /* as many would be for nothing as not */
    assert_int_equal(share_swaps(30, 14), 30);
    assert_int_equal(share_swaps(30, 0), 30);
    assert_int_equal(share_swaps(0, 0), 0);
    assert_int_equal(share_swaps(30, UINT64_MAX), 0);
}

static void others_ask_for_more(void **state)
{
    struct share s = {0};
    (void)state;
    assert_false(share_is_asked(&s, 0, 6400));
    assert_false(share_is_asked(&s, 100, 6400)); /* a 64th */
    assert_true(share_is_asked(&s, 101, 6400));
    assert_false(share_is_asked(&s, 101, 6400)); /* it is known */
    assert_false(share_is_asked(&s, 0, 6400));
    assert_true(share_is_asked(&s, 6400, 6400));
    /* It has moved what it was asked for. */
    assert_false(share_is_asked(&s, 0, 0));
    assert_true(share_is_asked(&s, 1, 0));
}

static void what_others_ask_for_is_no_room(void **state)
{
    (void)state;
    assert_int_equal(share_room(100, 0, 0, 0, 0), 100);
    assert_int_equal(share_room(90, 0, 0, 10, 0), 100); /* pages change places */
    assert_int_equal(share_room(100, 20, 0, 0, 0), 120);
    assert_int_equal(share_room(115, 20, 15, 0, 0), 120);
    assert_int_equal(share_room(125, 20, 25, 0, 0), 125);
    /* Asked for more than is free, then for less. */
    assert_int_equal(share_room(100, 20, 0, 0, 70), 50);
    assert_int_equal(share_room(60, 20, 0, 40, 70), 30);
    assert_int_equal(share_room(60, 20, 0, 40, 10), 60);
    assert_int_equal(share_room(100, 20, 0, 0, 300), 0);
    assert_int_equal(share_room(100, UINT64_MAX / HY_PAGE, 0, 0, 1), 100); /* no end to it */
}

/* Who was asked and gave has it back as soon as nobody wants it, and no more. */
static void what_one_gave_comes_back_at_once(void **state)
{
    struct spare s = {0};

    (void)state;
    spare_moved(&s, 0, true);
    spare_note(&s, 0, NULL);
    spare_moved(&s, -300, true);
    spare_note(&s, 100, NULL);
    assert_int_equal(spare_bytes(&s), 100);
    spare_moved(&s, -100, false); /* of when it was asked */
    spare_note(&s, 1000, NULL);
    assert_int_equal(spare_bytes(&s), 400);
    spare_moved(&s, -500, false); /* for reasons of its own */
    spare_note(&s, 1000, NULL);
    assert_int_equal(spare_bytes(&s), 400);
    spare_moved(&s, 350, false);
    spare_note(&s, 1000, NULL);
    assert_int_equal(spare_bytes(&s), 50);
    spare_moved(&s, 350, false);
    spare_note(&s, 1000, NULL);
    assert_int_equal(spare_bytes(&s), 0);
}

/* What is free for a moment is not spare, unless who may be asked for DRAM has just given it up. */
static void what_was_given_up_is_spare_at_once(void **state)
{
    struct spare s = {0};
    uint64_t held = 1000;
    (void)state;
    for (unsigned i = 1; i < SPARE_PASSES; i++) {
        spare_note(&s, 500, &held);
        assert_int_equal(spare_bytes(&s), 0);
    }
    spare_note(&s, 500, &held);
    assert_int_equal(spare_bytes(&s), 500);
    spare_note(&s, 800, &held); /* what the program itself has freed */
    assert_int_equal(spare_bytes(&s), 500);
    held = 800;
    spare_note(&s, 1000, &held);
    assert_int_equal(spare_bytes(&s), 700);
    spare_note(&s, 600, &held); /* others were faster */
    assert_int_equal(spare_bytes(&s), 600);
    spare_note(&s, 0, &held);
    assert_int_equal(spare_bytes(&s), 0);
    spare_note(&s, 150, &held);
    assert_int_equal(spare_bytes(&s), 150);
    spare_moved(&s, 150, false);
    spare_note(&s, 400, &held); /* its own again, but for what is left of what was given */
    assert_int_equal(spare_bytes(&s), 50);
    held = 1000; /* they have taken it back */
    spare_note(&s, 400, &held);
    assert_int_equal(spare_bytes(&s), 0);
    held = 0;
    spare_note(&s, 400, &held);
    assert_int_equal(spare_bytes(&s), 400);
    spare_note(&s, 400, NULL); /* nobody hears its wishes any more */
    assert_int_equal(spare_bytes(&s), 0);
    spare_note(&s, 400, &held);
    assert_int_equal(spare_bytes(&s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cycle_takes_every_block_once),
        cmocka_unit_test(no_block_waits_long_in_a_changing_footprint),
        cmocka_unit_test(a_share_of_a_large_footprint),
        cmocka_unit_test(the_interval_adapts),
        cmocka_unit_test(hurry_is_short),
        cmocka_unit_test(trials_are_small),
        cmocka_unit_test(the_rates_are_kept),
        cmocka_unit_test(a_long_sleep_saves_nothing_up),
        cmocka_unit_test(filling_free_dram_owes_bytes_only),
        cmocka_unit_test(moves_that_do_not_pay_pause),
        cmocka_unit_test(a_truce_is_kept),
        cmocka_unit_test(sheds_until_use_drops),
        cmocka_unit_test(balance_needs_proof),
        cmocka_unit_test(what_others_leave_is_filled),
        cmocka_unit_test(exchanges_wait_until_memory_has_come),
        cmocka_unit_test(others_ask_for_more),
        cmocka_unit_test(what_others_ask_for_is_no_room),
        cmocka_unit_test(what_one_gave_comes_back_at_once),
        cmocka_unit_test(what_was_given_up_is_spare_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
