/* SPDX-License-Identifier: BSD-2-Clause
 * What others are told of how unevenly a program uses its pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pages/rules/demand.h"

static struct heat_map map;

static void nothing_counted_tells_nothing(void **state)
{
    uint32_t cold[8];

    (void)state;
    map = (struct heat_map){0};
    assert_false(demand_cold(&map, 8, cold));
    map.movable[HY_PM][0] = 1000; /* never seen */
    assert_false(demand_cold(&map, 8, cold));
}

static void even_use_is_a_straight_line(void **state)
{
    uint32_t cold[8];

    (void)state;
    map = (struct heat_map){0};
    map.movable[HY_PM][9] = 300;
    map.movable[HY_DRAM][9] = 500;
    map.came[9] = 12345;
    assert_true(demand_cold(&map, 8, cold));
    for (unsigned k = 0; k < 8; k++)
        assert_in_range(cold[k], 1000 - 125 * k - 1, 1000 - 125 * k + 1);
}

static void a_hot_part_counts_wherever_it_lies(void **state)
{
    uint32_t cold[8];

    (void)state;
    map = (struct heat_map){0};
    map.movable[HY_PM][20] = 100;  /* an eighth, */
    map.movable[HY_DRAM][0] = 700; /* and the rest is never used */
    map.came[20] = 5;
    assert_true(demand_cold(&map, 8, cold));
    assert_int_equal(cold[0], 1000);
    for (unsigned k = 1; k < 8; k++)
        assert_int_equal(cold[k], 0);
}

/* Accesses go to pages that have not been used for long: no part of them is hot. */
static void who_sweeps_has_no_hot_part(void **state)
{
    static struct page_record rec[HISTORY_BLOCK];
    static struct page_count count[HISTORY_BLOCK];
    struct predictor p = predictor_of(PREDICT_WINDOW);
    struct worth_rule rule = {4, 8, 4};
    struct history h;
    uint32_t cold[8];
    int64_t gain = 0;

    (void)state;
    memset(&map, 0, sizeof(map));
    heat_map_init(&map, &p);
    history_init(&h, rec, count, HISTORY_BLOCK, HY_PM, &map);
    for (unsigned pass = 0; pass < 320; pass++) { /* a sixteenth of the pages in each */
        struct page_seen seen[HISTORY_BLOCK] = {{0}};
        for (unsigned i = 0; i < HISTORY_BLOCK / 16; i++)
            seen[pass % 16 * (HISTORY_BLOCK / 16) + i].reads = 20;
        history_count(&h, 0, seen, &rule, &gain);
        if (demand_cold(&map, 8, cold))
            demand_age(&map);
    }
    for (unsigned k = 0; k < 8; k++)
        assert_true(cold[k] >= 1000 - 125 * k - 30);
    for (unsigned pass = 0; pass < 320; pass++) { /* and from now on always the same */
        struct page_seen seen[HISTORY_BLOCK] = {{0}};
        for (unsigned i = 0; i < HISTORY_BLOCK / 16; i++)
            seen[i].reads = 20;
        history_count(&h, 0, seen, &rule, &gain);
        if (demand_cold(&map, 8, cold))
            demand_age(&map);
    }
    assert_true(cold[0] == 1000 && cold[1] < 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_counted_tells_nothing),
        cmocka_unit_test(even_use_is_a_straight_line),
        cmocka_unit_test(a_hot_part_counts_wherever_it_lies),
        cmocka_unit_test(who_sweeps_has_no_hot_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
