/* SPDX-License-Identifier: BSD-2-Clause
 * Exchanges that turned out wrong go back: when, and which pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pages/rules/takeback.h"

#define PAGES HISTORY_BLOCK

static const struct line_worth alike = {10, 10};

static struct page_record rec[PAGES];
static struct page_count counts[PAGES];
static struct heat_map map;

/* Page i is used told[i] times in each of some passes, enough to be sure. */
static int64_t use(struct history *h, const uint8_t *reads, unsigned passes)
{
    static struct page_seen accesses[PAGES];
    int64_t gain = 0;
    for (unsigned i = 0; i < PAGES; i++)
        accesses[i] = (struct page_seen){.reads = reads[i]};
    for (unsigned pass = 1; pass <= passes; pass++) {
        struct worth_rule r = worth_rule(&alike, pass);
        history_count(h, 0, accesses, &r, &gain);
    }
    return gain;
}

/* What one read of this page adds to the gain of all exchanges: 1, 0 or -1. */
static int read_of(struct history *h, uint32_t page)
{
    static uint8_t reads[PAGES];
    memset(reads, 0, sizeof(reads));
    reads[page] = 1;
    int64_t gain = use(h, reads, 1);
    return (gain > 0) - (gain < 0);
}

/* The first half on DRAM, the other on PM. */
static void begin(struct history *h)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    memset(counts, 0, sizeof(counts));
    heat_map_init(&map, &p);
    history_init(h, rec, counts, PAGES, HY_DRAM, &map);
    history_placed(h, PAGES / 2, PAGES / 2, HY_PM);
}

static void swap(struct history *h, uint32_t a, uint32_t b)
{
    history_moved(h, a, 1, history_group(h, a).tier == HY_PM ? HY_DRAM : HY_PM);
    history_moved(h, b, 1, history_group(h, b).tier == HY_PM ? HY_DRAM : HY_PM);
}

/* Whoever pays for exchanges as long as he may, and then gains no more, has lost no more than what
 * he began with and half of what he gained. */
static void income_is_borrowed_on_and_losses_are_bounded(void **state)
{
    (void)state;
    for (unsigned stop = 1; stop < 200; stop++) {
        struct exchange_account a = {.balance_ns = -50};
        double gained = 0, paid = 50;
        for (unsigned pass = 1; pass <= stop + 40; pass++) {
            double gain = pass <= stop ? 0.1 * paid : 0, may;
            exchange_gained(&a, gain);
            gained += gain;
            may = exchange_may_spend(&a, 0.5 * pass);
            exchange_paid(&a, may);
            paid += may;
        }
        assert_true(a.losing_ns == 0); /* a price is no sign of being wrong */
        assert_true(a.balance_ns >= -50 - 0.5 * gained - 1e-6 * paid);
        assert_true(stop < 50 || paid > 1000); /* what gains grows */
    }
    struct exchange_account loses = {.income_ns = -10, .gained_ns = 20, .balance_ns = 5};
    assert_true(exchange_may_spend(&loses, 100) == 5);
}

static void losses_are_borne_as_long_as_going_back_costs_more(void **state)
{
    struct exchange_account a = {0};
    (void)state;
    exchange_gained(&a, 500);
    exchange_gained(&a, -90);
    assert_false(exchange_loses(&a, 100)); /* a gain before is no reason to lose now, nor is 90 */
    exchange_gained(&a, -20);
    assert_true(exchange_loses(&a, 100));
    assert_false(exchange_loses(&a, 0)); /* there is nothing to take back */
    exchange_gained(&a, 60);
    assert_false(exchange_loses(&a, 100)); /* it was one of their turns */
    assert_float_equal(a.balance_ns, 450, 1e-9);
    exchange_gained(&a, 1000);
    exchange_gained(&a, -101);
    assert_true(exchange_loses(&a, 100));
}

/* First touch would have the DRAM of a page that is gone free for the next one. */
static void the_room_of_the_dead_is_owed(void **state)
{
    struct history h;
    (void)state;
    begin(&h);
    for (uint32_t i = 0; i < PAGES / 2; i++)
        history_present(&h, i);
    swap(&h, 10, PAGES - 10);
    assert_int_equal(read_of(&h, 10), -1);
    assert_int_equal(read_of(&h, PAGES - 10), 1);
    history_absent(&h, 10, 1, HY_DRAM);
    history_absent(&h, 20, 2, HY_DRAM); /* these lay where they had come */
    assert_int_equal(map.owed, 1);
    history_placed(&h, 20, 2, HY_PM);
    assert_int_equal(read_of(&h, 20), -1); /* would have had that room */
    assert_int_equal(read_of(&h, 21), 0);
    history_present(&h, 10);
    assert_int_equal(read_of(&h, 10), 0); /* came to DRAM, as it would have */
    /* And the room that an exchange has made is nobody's gain but that of who comes. */
    history_absent(&h, PAGES - 10, 1, HY_PM);
    history_absent(&h, 30, 1, HY_DRAM);
    assert_int_equal(map.owed, -1);
    history_present(&h, 30);
    assert_int_equal(read_of(&h, 30), 1);
    assert_int_equal(map.owed, 0);
    /* Moved for others, without an exchange. */
    history_moved(&h, 40, 1, HY_PM);
    assert_int_equal(map.owed, -1);
    history_found(&h, 40, 1, HY_DRAM); /* by somebody else */
    assert_int_equal(map.owed, 0);
    assert_int_equal(read_of(&h, 40), 0);
    /* It comes, is used and goes before anybody looks. */
    history_moved(&h, 50, 1, HY_PM);
    history_absent(&h, 51, 1, HY_DRAM);
    assert_int_equal(read_of(&h, 51), 1);
    history_absent(&h, 51, 1, HY_DRAM);
    assert_int_equal(map.owed, -1);
    history_drop(&h);
    assert_int_equal(map.owed, 0); /* of those that are not where they would be as many on each */
}

static void only_pairs_that_are_wrong_go_back(void **state)
{
    static uint8_t reads[PAGES];
    struct history h;
    struct move move[64];
    uint64_t pairs;
    (void)state;
    begin(&h);
    swap(&h, 10, PAGES - 10);
    swap(&h, 100, PAGES - 100);
    memset(reads, 0, sizeof(reads));
    reads[10] = 60;          /* on PM now, and used more */
    reads[PAGES - 100] = 60; /* on DRAM now, rightly */
    reads[50] = 1;
    reads[PAGES - 50] = 200; /* not moved: for exchanges to come */
    use(&h, reads, 16);
    unsigned n = takeback_list(&h, 1, move, 64, &pairs);
    assert_int_equal(pairs, 1);
    assert_int_equal(n, 2);
    assert_int_equal(move[0].to, HY_PM); /* makes the room */
    assert_int_equal(move[0].first, PAGES - 10);
    assert_int_equal(move[1].to, HY_DRAM);
    assert_int_equal(move[1].first, 10);
    for (unsigned i = 0; i < n; i++)
        history_moved(&h, move[i].first, move[i].pages, move[i].to);
    /* They are back: neither gains nor losses are theirs any more. */
    assert_int_equal(takeback_list(&h, 1, move, 64, &pairs), 0);
    assert_int_equal(pairs, 0);
    assert_false(counts[10].moved);
    assert_true(counts[100].moved);
    /* What a program does next may be something else; where its pages lie is the same. */
    history_cool(&h);
    assert_true(counts[100].moved);
    assert_int_equal(counts[100].mean, 0);
    history_drop(&h);
}

static void long_lists_come_in_parts(void **state)
{
    static uint8_t reads[PAGES];
    struct history h;
    struct move move[6];
    uint64_t pairs;
    (void)state;
    begin(&h);
    memset(reads, 0, sizeof(reads));
    for (uint32_t i = 0; i < 80; i += 8) {
        swap(&h, i, PAGES - 80 + i);
        reads[i] = (uint8_t)(20 + i);
    }
    use(&h, reads, 16);
    assert_int_equal(takeback_list(&h, 1, NULL, 0, &pairs), 0);
    assert_int_equal(pairs, 10);
    for (unsigned left = 10; left > 0;) {
        unsigned n = takeback_list(&h, 1, move, 6, &pairs);
        assert_int_equal(pairs, left);
        assert_int_equal(n, 2 * HY_MIN(left, 3u));
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(move[i].to, i < n / 2 ? HY_PM : HY_DRAM);
            history_moved(&h, move[i].first, move[i].pages, move[i].to);
        }
        left -= n / 2;
    }
    history_drop(&h);
}

/* Each call waits for a memory that is in use. */
static void neighbours_go_back_in_one_call(void **state)
{
    static uint8_t reads[PAGES];
    struct history h;
    struct move move[64];
    uint64_t pairs;
    (void)state;
    begin(&h);
    memset(reads, 0, sizeof(reads));
    /* One run came up; what went down for it lies in two parts. */
    for (uint32_t i = 0; i < 40; i++) {
        swap(&h, i < 24 ? i : i + 8, PAGES - 80 + i);
        reads[i < 24 ? i : i + 8] = 60;
    }
    use(&h, reads, 16);
    assert_int_equal(takeback_list(&h, 1, move, 64, &pairs), 3);
    assert_int_equal(pairs, 40);
    assert_int_equal(move[0].to, HY_PM);
    assert_int_equal(move[0].first, PAGES - 80);
    assert_int_equal(move[0].pages, 40);
    assert_int_equal(move[1].first, 0);
    assert_int_equal(move[1].pages, 24);
    assert_int_equal(move[2].first, 32);
    assert_int_equal(move[2].pages, 16);
    /* A list with room for one of these: as many each way. */
    assert_int_equal(takeback_list(&h, 1, move, 2, &pairs), 2);
    assert_int_equal(move[0].to, HY_PM);
    assert_int_equal(move[0].pages, 24);
    assert_int_equal(move[1].to, HY_DRAM);
    assert_int_equal(move[1].pages, 24);
    history_drop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(income_is_borrowed_on_and_losses_are_bounded),
        cmocka_unit_test(losses_are_borne_as_long_as_going_back_costs_more),
        cmocka_unit_test(the_room_of_the_dead_is_owed),
        cmocka_unit_test(only_pairs_that_are_wrong_go_back),
        cmocka_unit_test(long_lists_come_in_parts),
        cmocka_unit_test(neighbours_go_back_in_one_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
