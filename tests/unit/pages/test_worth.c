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
#define EACH (10 * WORTH_UNITS) /* of them, in units */

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
    assert_int_equal(mean, 7 * EACH);
    for (uint64_t pass = 200; pass <= 400; pass++) {
        struct worth_rule r = worth_rule(&alike, pass);
        mean = worth_mean(&r, mean, 0, 0);
    }
    assert_int_equal(mean, 0);
}

static void writes_count_by_their_price(void **state)
{
    struct line_worth dear = {5, 50}, free_reads = {0, 50}, none = {0, 0}, absurd = {5, 1e9};
    (void)state;
    assert_int_equal(worth_rule(&dear, 1).read, 5 * WORTH_UNITS);
    assert_int_equal(worth_rule(&dear, 1).write, 50 * WORTH_UNITS);
    assert_int_equal(worth_rule(&free_reads, 1).read, 0);
    assert_int_equal(worth_rule(&none, 1).write, 0);
    assert_int_equal(worth_rule(&absurd, 1).write, 1024); /* believed no more */
}

/* A pass in which reads are dear counts for as much more than one in which they are cheap. */
static void each_pass_has_its_own_price(void **state)
{
    struct line_worth dear = {20, 0}, cheap = {4, 0};
    struct worth_rule a = worth_rule(&dear, 1), b = worth_rule(&cheap, 2);
    (void)state;
    assert_int_equal(worth_mean(&b, worth_mean(&a, 0, 10, 0), 10, 0), 120 * WORTH_UNITS);
}

static void neighbours_are_ranked_together(void **state)
{
    struct worth_rule one = worth_rule(&alike, 1), many = worth_rule(&alike, WORTH_PASSES);
    (void)state;
    /* Twelve and four lines in one pass are luck, in many they are not. */
    assert_int_equal(worth_pooled(&one, 12 * EACH, 8 * 8 * EACH, 8), 8 * EACH);
    assert_int_equal(worth_pooled(&one, 4 * EACH, 8 * 8 * EACH, 8), 8 * EACH);
    assert_int_equal(worth_pooled(&many, 12 * EACH, 8 * 8 * EACH, 8), 12 * EACH);
    assert_int_equal(worth_pooled(&many, 4 * EACH, 8 * 8 * EACH, 8), 4 * EACH);
    assert_int_equal(worth_pooled(&one, 0, 0, 8), 0);
}

static void luck_moves_nothing(void **state)
{
    /* Costs nothing and has all time: what is left is luck. One access in a pass against none. */
    struct worth_exchange x = {.unit_ns = 1,
                               .cost_ns = 0,
                               .passes = 1e9,
                               .most_units = EACH,
                               .of_passes = 1,
                               .of_pages = 1};
    uint8_t below[SCORES];
    (void)state;
    worth_below(&x, below);
    assert_int_equal(below[worth_score(1 * EACH)], 0);
    assert_true(below[worth_score(30 * EACH)] > 0); /* against none at all it is sure */
    assert_true(below[worth_score(30 * EACH)] < worth_score(20 * EACH));
    x.of_passes = 16; /* the same means, seen sixteen times as often */
    worth_below(&x, below);
    assert_true(below[worth_score(30 * EACH)] >= worth_score(20 * EACH));
    x.of_passes = 2; /* or of eight pages, twice */
    x.of_pages = 8;
    worth_below(&x, below);
    assert_true(below[worth_score(30 * EACH)] >= worth_score(20 * EACH));
    /* As much worth in fewer accesses, each of which counts for more, is less sure. */
    x.most_units = 16 * EACH;
    worth_below(&x, below);
    assert_true(below[worth_score(30 * EACH)] < worth_score(20 * EACH));
    x.most_units = EACH;
    for (unsigned s = 1; s < SCORES; s++)
        assert_true(below[s] <= s); /* equals never change places */
}

static void what_does_not_pay_stays(void **state)
{
    struct worth_exchange x = {.unit_ns = 100.0 / EACH,
                               .cost_ns = 3000,
                               .passes = 4,
                               .most_units = EACH,
                               .of_passes = 16,
                               .of_pages = 1};
    uint8_t below[SCORES];
    (void)state;
    worth_below(&x, below);
    assert_int_equal(below[worth_score(7 * EACH)], 0); /* 2800 ns at most */
    assert_true(below[worth_score(16 * EACH)] > 0);    /* 6400 */
    assert_in_range(worth_fill_from(&x), worth_score(7 * EACH), worth_score(9 * EACH));
    x.unit_ns = 0;
    worth_below(&x, below);
    for (unsigned s = 0; s < SCORES; s++)
        assert_int_equal(below[s], 0);
    assert_int_equal(worth_fill_from(&x), SCORES);
}

static double foretells(struct worth_foretold *late, uint16_t *mean, const unsigned *reads,
                        unsigned pages, uint64_t pass)
{
    struct worth_rule r = worth_rule(&alike, pass);
    struct worth_foretold f = {0};
    for (unsigned i = 0; i < pages; i++) {
        worth_foretold_add(&f, mean[i], (int64_t)reads[i] * r.read);
        mean[i] = worth_mean(&r, mean[i], reads[i], 0);
    }
    return worth_foretells(late, &f);
}

/* Pages in turns are foretold as well as pages that are always in use; what a program no longer
 * does is not, nor what is luck. */
static void what_no_longer_comes_is_not_counted_on(void **state)
{
    struct worth_foretold late = {0};
    uint16_t mean[64] = {0};
    unsigned reads[64];
    double part = 0;
    uint64_t pass = 0;
    (void)state;
    while (pass++ < 24) {
        for (unsigned i = 0; i < 64; i++)
            reads[i] = i < 32 && i % 4 == pass % 4 ? 40 : 0; /* a sweep over half of them */
        part = foretells(&late, mean, reads, 64, pass);
    }
    assert_in_range(100 * part, 80, 100);
    for (unsigned n = 0; n < 4; n++, pass++) {
        for (unsigned i = 0; i < 64; i++)
            reads[i] = i >= 32 ? 10 : 0; /* the other half */
        part = foretells(&late, mean, reads, 64, pass);
    }
    assert_in_range(100 * part, 0, 50);
    for (unsigned n = 0; n < 40; n++, pass++)
        part = foretells(&late, mean, reads, 64, pass);
    assert_in_range(100 * part, 80, 100); /* it is the rule by now */
    for (unsigned n = 0; n < 40; n++, pass++) {
        memset(reads, 0, sizeof(reads));
        reads[n] = 40; /* never twice the same */
        part = foretells(&late, mean, reads, 64, pass);
    }
    assert_in_range(100 * part, 0, 40);
}

#define PAGES 1024u

static void pages_change_places_by_worth(void **state)
{
    static struct page_record rec[PAGES];
    static struct page_count counts[PAGES];
    static struct page_seen accesses[HISTORY_BLOCK];
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
            memset(accesses, 0, sizeof(accesses));
            for (unsigned i = 0; i < 32; i++)
                accesses[i * 3].reads = b ? 40 : 2;
            history_count(&h, b, accesses, &r, &gain);
        }
    }
    assert_int_equal(gain, 0); /* nothing was moved yet */
    struct worth_exchange x = {.unit_ns = 100.0 / EACH,
                               .cost_ns = 3000,
                               .passes = 4,
                               .most_units = EACH,
                               .of_passes = 8,
                               .of_pages = WORTH_POOL};
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
    memset(accesses, 0, sizeof(accesses));
    accesses[0].reads = 40;
    history_count(&h, 1, accesses, &r, &gain);
    assert_int_equal(gain, 40 * EACH);
    history_drop(&h);
}

/* The transfer is waited for by all threads, the page's lines by one of them. */
static void many_threads_pay_less_for_a_move(void **state)
{
    struct machine_figures f = {
        .medium = {{.read_ns = 100, .stream_ns = 10, .seq_read_mbs = 100000},
                   {.read_ns = 300, .seq_read_mbs = 4096, .seq_write_mbs = 1024}}};
    (void)state;
    assert_float_equal(worth_move_ns(&f, HY_DRAM, 1), 640 + 1000, 1e-6);
    assert_float_equal(worth_move_ns(&f, HY_DRAM, 8), 80 + 1000, 1e-6);
    assert_float_equal(worth_move_ns(&f, HY_PM, 1), 1920 + 4000, 1e-6);
    assert_float_equal(worth_move_ns(&f, HY_PM, 8), 240 + 4000, 1e-6);
    assert_float_equal(worth_move_ns(&f, HY_PM, 0), 1920 + 4000, 1e-6); /* none ran at the time */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_quarters_of_a_doubling),
        cmocka_unit_test(a_mean_gets_where_it_belongs),
        cmocka_unit_test(writes_count_by_their_price),
        cmocka_unit_test(each_pass_has_its_own_price),
        cmocka_unit_test(neighbours_are_ranked_together),
        cmocka_unit_test(luck_moves_nothing),
        cmocka_unit_test(what_does_not_pay_stays),
        cmocka_unit_test(what_no_longer_comes_is_not_counted_on),
        cmocka_unit_test(pages_change_places_by_worth),
        cmocka_unit_test(many_threads_pay_less_for_a_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
