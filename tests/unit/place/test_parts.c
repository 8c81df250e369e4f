/* SPDX-License-Identifier: BSD-2-Clause
 * Equal parts of the DRAM that all share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "place/rules/parts.h"

#define MB     HY_MIB
#define BUDGET (64 * MB)
#define MANY   17u

static uint64_t part[PARTS_MAX];

static void one_alone_has_all_that_it_can_fill(void **state)
{
    struct part_party p[] = {{0, 100 * MB}};

    (void)state;
    parts_find(BUDGET, p, 1, part);
    assert_int_equal(part[0], BUDGET);
    p[0].bytes = 3 * MB;
    parts_find(BUDGET, p, 1, part);
    assert_int_equal(part[0], 3 * MB);
}

/* make -j16 beside a database, from another terminal or another one's: */
static void small_ones_take_no_more_than_they_can_fill(void **state)
{
    struct part_party p[MANY] = {{0, 60 * MB}};

    (void)state;
    for (unsigned i = 1; i < MANY; i++)
        p[i] = (struct part_party){0, MB};
    parts_find(BUDGET, p, MANY, part);
    assert_int_equal(part[0], 48 * MB); /* a seventeenth would be 3.8 */
    for (unsigned i = 1; i < MANY; i++)
        assert_int_equal(part[i], MB);
}

static void a_program_of_many_processes_is_one(void **state)
{
    struct part_party p[MANY] = {{7, 60 * MB}};

    (void)state;
    for (unsigned i = 1; i < MANY; i++)
        p[i] = (struct part_party){9, 60 * MB};
    parts_find(BUDGET, p, MANY, part);
    assert_int_equal(part[0], 32 * MB);
    for (unsigned i = 1; i < MANY; i++)
        assert_int_equal(part[i], 2 * MB);
    p[5].bytes = MB; /* in a group, too, the rest is the others' */
    parts_find(BUDGET, p, MANY, part);
    assert_int_equal(part[5], MB);
    assert_int_equal(part[6], 31 * MB / 15);
    p[0].group = p[1].group = 0; /* nobody's group is no group */
    parts_find(BUDGET, p, MANY, part);
    assert_int_equal(part[0], BUDGET / 3);
    assert_int_equal(part[1], BUDGET / 3);
}

static uint64_t any(uint64_t below)
{
    return (uint64_t)random() % below;
}

/* Whatever others tell of their data, and however many of them there are in a group. */
static void nobody_makes_anothers_part_small(void **state)
{
    struct part_party p[PARTS_MAX];

    (void)state;
    for (int round = 0; round < 2000; round++) {
        unsigned n = 1 + (unsigned)any(any(20) ? 12 : PARTS_MAX), groups = 1 + (unsigned)any(5);
        uint64_t sum = 0;
        for (unsigned i = 0; i < n; i++)
            p[i] = (struct part_party){i == 0 ? 0 : 1 + (int32_t)any(groups),
                                       any(3) ? any(90) * MB : UINT64_MAX >> any(64)};
        parts_find(BUDGET, p, n, part);
        for (unsigned i = 0; i < n; i++) {
            assert_true(part[i] <= p[i].bytes || p[i].bytes == 0);
            sum += part[i];
        }
        assert_true(sum <= BUDGET);
        assert_true(part[0] == p[0].bytes || part[0] >= BUDGET / (groups + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_alone_has_all_that_it_can_fill),
        cmocka_unit_test(small_ones_take_no_more_than_they_can_fill),
        cmocka_unit_test(a_program_of_many_processes_is_one),
        cmocka_unit_test(nobody_makes_anothers_part_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
