/* SPDX-License-Identifier: BSD-2-Clause
 * What pages are worth on DRAM where accesses are counted, and which may change places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pages/rules/history.h"
#include "pages/rules/movelist.h"
#include "pages/rules/worth.h"

static const struct line_worth alike = {10, 10};

static void ranks_are_quarters_of_a_doubling(void **state)
{
    (void)state;
    assert_int_equal(worth_score(0), 0);
    for (unsigned mean = 1; mean <= UINT16_MAX; mean++) {
        unsigned s = worth_score((uint16_t)mean);
        assert_in_range(s, 1, SCORES - 1);
        assert_true(s >= worth_score((uint16_t)(mean - 1)));
        assert_true(worth_least(s) <= mean);
        assert_true(mean < worth_least(s + 1) || mean < 4); /* small numbers skip ranks */
    }
    assert_int_equal(worth_score(2048) - worth_score(1024), 4);
}

static void a_mean_gets_where_it_belongs(void **state)
{
    uint16_t mean = 0;
    (void)state;
    for (uint64_t pass = 1; pass <= 200; pass++) {
        struct worth_rule r = worth_rule(&alike, pass);
        assert_int_equal(r.passes, pass < WORTH_PASSES ? pass : WORTH_PASSES);
        mean = worth_mean(&r, mean, 5, 2);
    }
    assert_int_equal(mean, 7 * WORTH_UNIT);
    for (uint64_t pass = 200; pass <= 400; pass++) {
        struct worth_rule r = worth_rule(&alike, pass);
        mean = worth_mean(&r, mean, 0, 0);
    }
    assert_int_equal(mean, 0);
}

static void writes_count_by_their_price(void **state)
{
    struct line_worth dear = {5, 50}, free_reads = {0, 50}, none = {0, 0};
    (void)state;
    assert_int_equal(worth_rule(&dear, 1).write, 10 * WORTH_UNIT);
    assert_int_equal(worth_rule(&free_reads, 1).write, 16 * WORTH_UNIT); /* believed no more */
    assert_int_equal(worth_rule(&none, 1).write, WORTH_UNIT);
}

static void luck_moves_nothing(void **state)
{
    /* Costs nothing and has all time: what is left is luck. One access in a pass against none. */
    struct worth_exchange x = {.read_ns = 1, .cost_ns = 0, .passes = 1e9, .of_passes = 1};
    uint8_t below[SCORES];
    (void)state;
    worth_below(&x, below);
    assert_int_equal(below[worth_score(1 * WORTH_UNIT)], 0);
    assert_true(below[worth_score(30 * WORTH_UNIT)] > 0); /* against none at all it is sure */
    assert_true(below[worth_score(30 * WORTH_UNIT)] < worth_score(20 * WORTH_UNIT));
    x.of_passes = WORTH_PASSES; /* the same means, seen sixteen times as often */
    worth_below(&x, below);
    assert_true(below[worth_score(30 * WORTH_UNIT)] >= worth_score(20 * WORTH_UNIT));
    for (unsigned s = 1; s < SCORES; s++)
        assert_true(below[s] <= s); /* equals never change places */
}

static void what_does_not_pay_stays(void **state)
{
    struct worth_exchange x = {.read_ns = 100, .cost_ns = 3000, .passes = 4, .of_passes = 16};
    uint8_t below[SCORES];
    (void)state;
    worth_below(&x, below);
    assert_int_equal(below[worth_score(7 * WORTH_UNIT)], 0); /* 2800 ns at most */
    assert_true(below[worth_score(16 * WORTH_UNIT)] > 0);    /* 6400 */
    assert_in_range(worth_fill_from(&x), worth_score(7 * WORTH_UNIT), worth_score(9 * WORTH_UNIT));
    x.read_ns = 0; /* PM costs nothing more here */
    worth_below(&x, below);
    for (unsigned s = 0; s < SCORES; s++)
        assert_int_equal(below[s], 0);
    assert_int_equal(worth_fill_from(&x), SCORES);
}

#define PAGES 1024u

static void pages_change_places_by_worth(void **state)
{
    static struct page_record rec[PAGES];
    static struct page_count counts[PAGES];
    static struct page_seen told[HISTORY_BLOCK];
    static struct heat_map map;
    struct predictor p = predictor_of(PREDICT_WINDOW);
    struct history h;
    struct move move[64];
    struct move_plan plan;
    struct move_hand hand = {0};
    uint8_t below[SCORES];
    int64_t gain = 0;
    (void)state;
    heat_map_init(&map, &p);
    history_init(&h, rec, counts, PAGES, HY_DRAM, &map);
    history_placed(&h, 512, 512, HY_PM); /* the second block */
    for (unsigned pass = 1; pass <= 8; pass++) {
        struct worth_rule r = worth_rule(&alike, pass);
        for (unsigned b = 0; b < 2; b++) {
            memset(told, 0, sizeof(told));
            for (unsigned i = 0; i < 32; i++)
                told[i * 3].reads = b ? 40 : 2;
            history_count(&h, b, told, &r, &gain);
        }
    }
    assert_int_equal(gain, 0); /* nothing was moved yet */
    struct worth_exchange x = {.read_ns = 100, .cost_ns = 3000, .passes = 4, .of_passes = 8};
    worth_below(&x, below);
    struct move_limits l = {
        .dram_pages = 512, .moves = 1000, .swaps = 500, .below = below, .fill_from = SCORES};
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 32);
    assert_int_equal(plan.down, 32);
    unsigned n = move_list(&h, 1, &plan, &hand, 100000, move, 64, NULL);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(move[i].to, move[i].first < 512 ? HY_PM : HY_DRAM);
        if (move[i].to == HY_DRAM)
            assert_int_equal((move[i].first - 512) % 3, 0);
        history_moved(&h, move[i].first, move[i].pages, move[i].to);
    }
    /* What they are used for from now on is what the moves have brought. */
    struct worth_rule r = worth_rule(&alike, 9);
    memset(told, 0, sizeof(told));
    told[0].reads = 40;
    history_count(&h, 1, told, &r, &gain);
    assert_int_equal(gain, 40 * WORTH_UNIT);
    history_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_quarters_of_a_doubling),
        cmocka_unit_test(a_mean_gets_where_it_belongs),
        cmocka_unit_test(writes_count_by_their_price),
        cmocka_unit_test(luck_moves_nothing),
        cmocka_unit_test(what_does_not_pay_stays),
        cmocka_unit_test(pages_change_places_by_worth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
