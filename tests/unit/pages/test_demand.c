/* SPDX-License-Identifier: BSD-2-Clause
 * What others are told of how unevenly a program uses its pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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
    assert_true(demand_cold(&map, 8, cold));
    assert_int_equal(cold[0], 1000);
    for (unsigned k = 1; k < 8; k++)
        assert_int_equal(cold[k], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_counted_tells_nothing),
        cmocka_unit_test(even_use_is_a_straight_line),
        cmocka_unit_test(a_hot_part_counts_wherever_it_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
