/* SPDX-License-Identifier: BSD-2-Clause
 * What of a plan of sites holds when the run is another than the profile's. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/site_quota.h"

static struct site_plan plan;
static struct quota_site run[PLAN_MAX];
static uint64_t quota[PLAN_MAX];

/* Three sites of 4 MiB by rank 0, 1, 2. */
static void three(void)
{
    memset(&plan, 0, sizeof(plan));
    memset(run, 0, sizeof(run));
    plan.n = 3;
    for (uint16_t i = 0; i < 3; i++) {
        plan.order[i] = plan.place[i].rank = i;
        run[i] = (struct quota_site){.need = site_plan_charge(4 * HY_MIB),
                                     .block = site_plan_charge(4 * HY_MIB)};
    }
}

static void test_ranking_holds_when_sites_grow(void **state)
{
    (void)state;
    uint64_t share = 9 * HY_MIB;
    three();
    site_quota_fill(&plan, run, share, quota);
    assert_true(quota[0] >= 4 * HY_MIB && quota[1] >= 4 * HY_MIB && quota[2] == 0);
    /* The best one has doubled: the second loses its part, though it came first. */
    run[1].live = 4 * HY_MIB;
    run[0].live = 8 * HY_MIB;
    site_quota_fill(&plan, run, share, quota);
    assert_true(quota[0] >= 8 * HY_MIB && quota[0] <= share);
    assert_int_equal(quota[1], 0);
    /* One of a single block is a few bytes larger than expected: its page counts. */
    run[0].live = 4 * HY_MIB + 100;
    site_quota_fill(&plan, run, 8 * HY_MIB, quota);
    assert_int_equal(quota[0], 4 * HY_MIB + HY_PAGE);
    assert_int_equal(quota[1], 0);
    run[0].live = 8 * HY_MIB;
    /* The best one is larger than all DRAM and of one block: the next ones get it. */
    run[0].live = run[0].block = 30 * HY_MIB;
    site_quota_fill(&plan, run, share, quota);
    assert_int_equal(quota[0], 0);
    assert_true(quota[1] > 0 && quota[2] > 0);
    /* Unless its block can be split. */
    run[0].parts = true;
    site_quota_fill(&plan, run, share, quota);
    assert_int_equal(quota[0], share);
    assert_int_equal(quota[1] + quota[2], 0);
}

/* Of one with hot parts, these come first; the rest of it gets what all others leave. */
static void test_hot_parts_do_not_bring_the_rest(void **state)
{
    (void)state;
    three();
    run[0].parts = run[1].parts = true;
    run[0].best = HY_MIB;
    site_quota_fill(&plan, run, 9 * HY_MIB, quota);
    assert_true(quota[0] == HY_MIB && quota[1] == 4 * HY_MIB && quota[2] == 4 * HY_MIB);
    site_quota_fill(&plan, run, 11 * HY_MIB, quota);
    assert_true(quota[0] == 3 * HY_MIB && quota[1] == 4 * HY_MIB && quota[2] == 4 * HY_MIB);
    site_quota_fill(&plan, run, HY_MIB / 2, quota);
    assert_true(quota[0] == HY_MIB / 2 && quota[1] == 0 && quota[2] == 0);
}

static void test_what_does_not_come_is_not_kept(void **state)
{
    (void)state;
    uint64_t share = 9 * HY_MIB;
    three();
    run[0].lapsed = true;
    site_quota_fill(&plan, run, share, quota);
    assert_int_equal(quota[0], 0);
    assert_true(quota[1] > 0 && quota[2] > 0);
    run[2].fixed = true; /* named DRAM goes first, beyond the share if need be */
    site_quota_fill(&plan, run, HY_MIB, quota);
    assert_true(quota[2] > HY_MIB);
    assert_int_equal(quota[1], 0);
}

static void test_scale(void **state)
{
    (void)state;
    struct quota_scale s = {0, 0};
    assert_true(quota_scale_get(&s) == 1);
    quota_scale_note(&s, 110, 100);
    assert_true(quota_scale_get(&s) == 1);
    quota_scale_note(&s, 3000, 1400);
    assert_float_equal(quota_scale_get(&s), 3110.0 / 1500, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranking_holds_when_sites_grow),
        cmocka_unit_test(test_hot_parts_do_not_bring_the_rest),
        cmocka_unit_test(test_what_does_not_come_is_not_kept),
        cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
