/* SPDX-License-Identifier: BSD-2-Clause
 * Whose account a move is booked to: what histories exchange is theirs to gain by, to lose by and
 * to take back; what comes and goes for tasks is not. Pages move in the books alone. */
#include "sampler_util.h"

#include "pages/migrate_books.h"
#include "pages/migrate_carry.h"
#include "place/policy.h"

#define PAGES 512u

static const struct line_worth alike = {10, 10};

static int open_it(void)
{
    return 0;
}

static void close_it(void)
{
}

/* All pages are read, the lower half more. */
static int drain_it(sampler_access_fn fn)
{
    for (unsigned i = 0; i < PAGES; i++)
        for (unsigned k = 0; k < (i < PAGES / 2 ? 4u : 1u); k++)
            fn((uintptr_t)BASE + i * HY_PAGE, false);
    return 0;
}

static const struct sampler_source counted = {.name = "counted",
                                              .reads = true,
                                              .writes = true,
                                              .open = open_it,
                                              .close = close_it,
                                              .drain = drain_it,
                                              .period = 16};

/* --- there is always room, and nobody moves pages beside us ------------------------------------
 */

bool policy_charge(enum hy_tier t, size_t bytes, bool owed)
{
    (void)t;
    (void)bytes;
    (void)owed;
    return true;
}

void policy_discharge(enum hy_tier t, size_t bytes)
{
    (void)t;
    (void)bytes;
}

void books_settle(uint64_t paid)
{
    (void)paid;
}

void beside_moved(struct beside *b, const void *base, size_t pages, enum migrate_outcome o)
{
    (void)b;
    (void)base;
    (void)pages;
    (void)o;
}

/* --- tests ------------------------------------------------------------------------------------ */

static struct pace pace;
static struct migrate_judge judge;
static struct beside beside;
static struct migrate_pass moved;
static struct carrier carrier = {
    .how = {MIGRATE_EMULATED, {0}}, .pace = &pace, .judge = &judge, .beside = &beside};

/* The lower half, which is used more, on PM. */
static int begin(void **state)
{
    (void)state;
    struct pace_limits limits = {
        .interval_min = 1000000, .interval_max = 8000000, .core_permille = 10};
    pace_init(&pace, &limits);
    carrier.moves = 0;
    open_with(&counted, NULL);
    assert_int_equal(sampler_add(BASE, PAGES * HY_PAGE / 2, HY_PM, false), 0);
    assert_int_equal(sampler_add(BASE + PAGES * HY_PAGE / 2, PAGES * HY_PAGE / 2, HY_DRAM, false),
                     0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sampler_close();
    return 0;
}

static int64_t gain_of_passes(unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        struct worth_rule r = worth_rule(&alike, i);
        sampler_price(&r);
        (void)pass();
    }
    return sampler_gain();
}

static struct page_move pages_to(unsigned first, unsigned n, enum hy_tier to)
{
    return (struct page_move){BASE + first * HY_PAGE, n * HY_PAGE, to};
}

static void exchanges_are_the_histories_own(void **state)
{
    struct page_move up = pages_to(8, 8, HY_DRAM), down = pages_to(PAGES - 8, 8, HY_PM);
    uint64_t pairs;
    (void)state;
    assert_int_equal(gain_of_passes(8), 0);
    assert_true(carry_out(&carrier, &down, &moved, false));
    assert_true(carry_out(&carrier, &up, &moved, false));
    assert_true(gain_of_passes(8) > 0);
    (void)sampler_takeback(NULL, 0, &pairs);
    assert_int_equal(pairs, 0); /* they are where they belong */
    down = pages_to(8, 8, HY_PM), up = pages_to(PAGES - 8, 8, HY_DRAM);
    assert_true(carry_out(&carrier, &down, &moved, false));
    assert_true(carry_out(&carrier, &up, &moved, false));
    assert_int_equal(gain_of_passes(8), 0); /* moved twice, they are back */
    down = pages_to(PAGES - 16, 8, HY_PM), up = pages_to(PAGES - 32, 8, HY_DRAM);
    assert_true(carry_out(&carrier, &down, &moved, false));
    assert_true(gain_of_passes(8) < 0);
}

static void what_tasks_move_is_nobody_elses(void **state)
{
    struct page_move up = pages_to(8, 8, HY_DRAM), down = pages_to(PAGES - 8, 8, HY_PM);
    uint64_t pairs;
    (void)state;
    assert_int_equal(gain_of_passes(8), 0);
    assert_true(carry_now(&carrier, &down, &moved));
    assert_true(carry_now(&carrier, &up, &moved));
    assert_true(sampler_all_on(up.base, up.bytes, HY_DRAM));
    assert_true(sampler_all_on(down.base, down.bytes, HY_PM));
    assert_int_equal(gain_of_passes(8), 0);
    /* The task ends, and others' data take the room. */
    up = pages_to(16, 8, HY_DRAM), down = pages_to(8, 8, HY_PM);
    assert_true(carry_now(&carrier, &down, &moved));
    assert_true(carry_now(&carrier, &up, &moved));
    assert_int_equal(gain_of_passes(8), 0);
    (void)sampler_takeback(NULL, 0, &pairs);
    assert_int_equal(pairs, 0);
}

/* What histories had exchanged before a task took it is theirs no more, but what a task found where
 * it wanted it is. */
static void tasks_take_over_what_they_move(void **state)
{
    struct page_move up = pages_to(8, 8, HY_DRAM), back = pages_to(8, 8, HY_PM);
    (void)state;
    assert_int_equal(gain_of_passes(8), 0);
    assert_true(carry_out(&carrier, &up, &moved, false));
    int64_t gain = gain_of_passes(8);
    assert_true(gain > 0);
    (void)carry_now(&carrier, &up, &moved);
    assert_int_equal(gain_of_passes(8), gain);
    assert_true(carry_now(&carrier, &back, &moved));
    assert_int_equal(gain_of_passes(8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exchanges_are_the_histories_own, begin, end),
        cmocka_unit_test_setup_teardown(what_tasks_move_is_nobody_elses, begin, end),
        cmocka_unit_test_setup_teardown(tasks_take_over_what_they_move, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
