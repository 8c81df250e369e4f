/* SPDX-License-Identifier: BSD-2-Clause
 * Pages that others move: who undid whose moves, how long pages rest, when moves pause, and how
 * many pages are asked about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "pages/rules/coverage.h"
#include "pages/rules/foreign.h"

#define MS 1000000ull
#define S  1000000000ull
#define AT (160 * FOREIGN_SPOT) /* a page */

static struct foreign o;

static void reset(void)
{
    foreign_init(&o);
    foreign_pass(&o);
}

static bool rests(uint64_t page)
{
    uint64_t first;
    for (unsigned at = 0; foreign_resting(&o, &at, &first);)
        if (page >= first && page < first + FOREIGN_SPOT)
            return true;
    return false;
}

/* Passes until it may move again, this one being the first. */
static unsigned rest_of(uint64_t page)
{
    unsigned n = 0;
    for (; rests(page) && n < 10000; n++)
        foreign_pass(&o);
    return n;
}

/* Somebody takes back what we moved, again and again: each rest is twice as long, up to a limit. */
static void who_is_undone_rests_for_longer(void **state)
{
    unsigned before = 0;
    (void)state;
    reset();
    for (unsigned i = 0; i < 12; i++) {
        assert_false(rests(AT));
        foreign_ours(&o, AT, 4);
        foreign_pass(&o);
        assert_int_equal(foreign_found(&o, AT, 4, true), 4);
        assert_true(rests(AT) && rests(AT + FOREIGN_SPOT - 1)); /* and its neighbours */
        assert_false(rests(AT + FOREIGN_SPOT) || rests(AT - 1));
        unsigned rest = rest_of(AT);
        assert_int_equal(rest, i == 0 ? 8 : HY_MIN(2 * before, 512u));
        before = rest;
    }
}

/* Moves that are not against ours are followed, not fought: a short rest, no strike. */
static void others_may_move_what_we_have_not(void **state)
{
    (void)state;
    reset();
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(foreign_found(&o, AT, 16, false), 0);
        assert_int_equal(rest_of(AT), 4);
        assert_int_equal(foreign_pause(&o), 0);
    }
    /* Back at home, after a move of theirs. */
    assert_int_equal(foreign_found(&o, AT, 16, true), 0);
    assert_int_equal(rest_of(AT), 4);
    /* We bring it where it belongs, and they take it away: that is against us. */
    foreign_ours(&o, AT, 1);
    assert_int_equal(foreign_found(&o, AT, 1, false), 1);
    assert_int_equal(rest_of(AT), 8);
}

static void calm_is_rewarded(void **state)
{
    (void)state;
    reset();
    for (unsigned i = 0; i < 3; i++) {
        foreign_ours(&o, AT, 1);
        foreign_found(&o, AT, 1, true);
        if (i < 2)
            rest_of(AT);
    }
    assert_int_equal(rest_of(AT), 32);
    for (unsigned i = 0; i <= 33; i++)
        foreign_pass(&o);
    foreign_ours(&o, AT, 1);
    foreign_found(&o, AT, 1, true);
    assert_int_equal(rest_of(AT), 8); /* as the first time */
}

/* A child's and its parent's copies lie at home: nobody moved them. */
static void copies_after_a_fork_are_no_moves(void **state)
{
    (void)state;
    reset();
    foreign_forked(&o);
    for (unsigned i = 0; i < 15; i++, foreign_pass(&o)) {
        assert_int_equal(foreign_found(&o, AT + i * FOREIGN_SPOT, FOREIGN_SPOT, true), 0);
        assert_false(rests(AT + i * FOREIGN_SPOT));
        assert_int_equal(foreign_pause(&o), 0);
    }
    assert_int_equal(foreign_found(&o, AT, 1, false), 0); /* away from home: somebody did */
    assert_true(rests(AT));
    foreign_pass(&o);
    foreign_pass(&o);
    assert_int_equal(foreign_found(&o, 7 * AT, 1, true), 1); /* not for ever */
}

/* Much of what is moved comes back: a pause, and a longer one if that goes on. */
static void much_that_is_undone_is_a_pause(void **state)
{
    unsigned want = 4;
    (void)state;
    reset();
    for (unsigned i = 0; i < 8; i++) {
        foreign_ours(&o, AT + 1000 * i, 300);
        assert_int_equal(foreign_pause(&o), 0);
        foreign_pass(&o);
        foreign_found(&o, AT + 1000 * i, 100, true);
        assert_int_equal(foreign_pause(&o), want);
        assert_int_equal(foreign_pause(&o), 0); /* said once, */
        foreign_pass(&o);
        foreign_found(&o, AT + 1000 * i + 200, 100, true); /* also where more is found of it */
        assert_int_equal(foreign_pause(&o), 0);
        for (unsigned k = 0; k < want; k++)
            foreign_pass(&o);
        want = HY_MIN(want * 2, 64u);
    }
    for (unsigned i = 0; i < 40; i++) { /* moves that stay */
        foreign_ours(&o, 0, 300);
        assert_int_equal(foreign_pause(&o), 0);
        foreign_pass(&o);
    }
    foreign_ours(&o, 0, 300);
    foreign_found(&o, 0, 300, true);
    /* With all that stayed, these are few. */
    assert_int_equal(foreign_pause(&o), 0);
    for (unsigned i = 0; i < 100; i++)
        foreign_pass(&o);
    foreign_ours(&o, 0, 300);
    foreign_found(&o, 0, 300, true);
    assert_int_equal(foreign_pause(&o), 4);
}

static void little_is_no_quarrel(void **state)
{
    (void)state;
    reset();
    foreign_ours(&o, 0, 1000);
    foreign_found(&o, 0, 200, true);
    assert_int_equal(foreign_pause(&o), 0); /* a fifth */
    reset();
    foreign_ours(&o, 0, 31);
    foreign_found(&o, 0, 31, true);
    assert_int_equal(foreign_pause(&o), 0); /* a handful */
}

/* More spots than there is room for: who is fought over most is remembered. */
static void memory_is_bounded(void **state)
{
    unsigned kept = 0, at = 0;
    uint64_t first;
    (void)state;
    reset();
    for (unsigned i = 0; i < 3; i++, foreign_pass(&o))
        for (uint64_t n = 1; n <= 100; n++) {
            foreign_ours(&o, n * FOREIGN_SPOT, FOREIGN_SPOT);
            foreign_found(&o, n * FOREIGN_SPOT, FOREIGN_SPOT, true);
        }
    assert_int_equal(foreign_found(&o, 1000 * FOREIGN_SPOT, 100000 * FOREIGN_SPOT, false), 0);
    for (uint64_t n = 1; n <= 100; n++)
        kept += rests(n * FOREIGN_SPOT);
    assert_true(kept >= 95);
    for (kept = 0; foreign_resting(&o, &at, &first);)
        kept++;
    assert_true(kept > OTHERS_SPOTS / 2 && kept <= OTHERS_SPOTS);
}

/* Two movers of opposite minds, for long: ours makes few moves, and never stops for good. */
static void a_long_fight_is_cheap(void **state)
{
    enum { PAGES = 2048 };
    unsigned moves = 0, late = 0, pause = 0;
    (void)state;
    reset();
    for (unsigned pass = 0; pass < 3000; pass++, foreign_pass(&o)) {
        unsigned up = 0;
        if (pause > 0)
            pause--;
        for (unsigned p = 0; pause == 0 && p < PAGES; p += FOREIGN_SPOT)
            if (!rests(AT + p)) {
                foreign_ours(&o, AT + p, FOREIGN_SPOT);
                up += FOREIGN_SPOT;
            }
        moves += up;
        late += pass >= 1500 ? up : 0;
        for (unsigned p = 0; up > 0 && p < PAGES; p += FOREIGN_SPOT)
            foreign_found(&o, AT + p, FOREIGN_SPOT, true);
        pause = HY_MAX(pause, foreign_pause(&o));
    }
    assert_true(moves <= 20 * PAGES); /* without a memory: 3,000 times */
    assert_true(late > 0);
}

static void asking_has_a_price(void **state)
{
    (void)state;
    /* an eighth of the share of a core: 1% of a second is 10 ms */
    assert_int_equal(others_budget(S, 10, 1000), 1250);
    assert_int_equal(others_budget(MS, 10, 1000), 512);
    assert_int_equal(others_budget(3600 * S, 1000, 0), 8192);
    assert_int_equal(foreign_step(512, 512), 1);
    assert_int_equal(foreign_step(513, 512), 2);
    assert_int_equal(foreign_step(8192, 512), 16);
    assert_int_equal(foreign_step(UINT64_MAX, 512), 16); /* the rest in later passes */
    assert_int_equal(foreign_step(0, 512), 1);
}

/* Whatever is told, nothing is out of bounds (and nothing overflows: sanitizers look). */
static void random_life(void **state)
{
    uint64_t random = 5;
    (void)state;
    reset();
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t first = random_next(&random) % 50000, n = random_next(&random) % 600;
        switch (random_next(&random) % 8) {
        case 0:
            foreign_pass(&o);
            break;
        case 1:
        case 2:
            foreign_ours(&o, first, n);
            break;
        case 3:
            if (i % 97 == 0)
                foreign_forked(&o);
            break;
        case 4:
            assert_true(foreign_pause(&o) <= 64);
            break;
        default:
            assert_true(foreign_found(&o, first, n, random & 1) <= n);
        }
    }
    assert_true(rest_of(AT) <= 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_undone_rests_for_longer),
        cmocka_unit_test(others_may_move_what_we_have_not),
        cmocka_unit_test(calm_is_rewarded),
        cmocka_unit_test(copies_after_a_fork_are_no_moves),
        cmocka_unit_test(much_that_is_undone_is_a_pause),
        cmocka_unit_test(little_is_no_quarrel),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(a_long_fight_is_cheap),
        cmocka_unit_test(asking_has_a_price),
        cmocka_unit_test(random_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
