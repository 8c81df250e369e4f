/* SPDX-License-Identifier: BSD-2-Clause
 * Which sites of small blocks are worth unwinding: what DRAM is won for better ones, no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place/rules/small_sites.h"

#define MIB ((uint64_t)1 << 20)

static struct plan_site site[3];
static struct site_plan plan;

static void set(unsigned i, uint64_t bytes, double saves_ns, uint64_t dram_bytes)
{
    site[i].bytes = bytes;
    plan.place[i] = (struct plan_tier){
        .tier = dram_bytes ? HY_DRAM : HY_PM, .dram_bytes = dram_bytes, .saves_ns = saves_ns};
}

static void a_site_that_is_nearly_as_good_saves_little(void **state)
{
    (void)state;
    set(0, MIB, 10e6, MIB);
    set(1, MIB, 9e6, 0);
    assert_float_equal(small_site_saves(&plan, site, 2, 1), 1e6, 1);
    assert_true(small_site_pays(&plan, site, 2, 1, 5000));
    assert_false(small_site_pays(&plan, site, 2, 1, 50000));
}

static void no_more_dram_is_won_than_better_sites_have(void **state)
{
    (void)state;
    set(0, 4 * MIB, 40e6, MIB); /* in part */
    set(1, 8 * MIB, 0, 0);
    assert_float_equal(small_site_saves(&plan, site, 2, 1), 10e6, 1);
}

static void no_more_is_won_than_it_would_take(void **state)
{
    (void)state;
    set(0, 4 * MIB, 40e6, 4 * MIB);
    set(1, MIB, 0, 0);
    assert_float_equal(small_site_saves(&plan, site, 2, 1), 10e6, 1);
}

static void worse_sites_and_those_on_pm_win_nothing(void **state)
{
    (void)state;
    set(0, MIB, 1e6, MIB);
    set(1, MIB, 2e6, 0);
    set(2, MIB, 9e6, 0);
    assert_float_equal(small_site_saves(&plan, site, 3, 1), 0, 0);
    assert_false(small_site_pays(&plan, site, 3, 1, 0));
}

static void what_has_dram_itself_is_not_kept_off_it(void **state)
{
    (void)state;
    set(0, MIB, 9e6, MIB);
    set(1, MIB, 1e6, MIB / 2);
    assert_float_equal(small_site_saves(&plan, site, 2, 1), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_that_is_nearly_as_good_saves_little),
        cmocka_unit_test(no_more_dram_is_won_than_better_sites_have),
        cmocka_unit_test(no_more_is_won_than_it_would_take),
        cmocka_unit_test(worse_sites_and_those_on_pm_win_nothing),
        cmocka_unit_test(what_has_dram_itself_is_not_kept_off_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
