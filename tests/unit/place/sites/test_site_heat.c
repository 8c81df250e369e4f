/* SPDX-License-Identifier: BSD-2-Clause
 * Parts of blocks that are used more than others: levels, and what of their lines meets DRAM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/site_heat.h"

static struct profile_site site;
static uint8_t level[PROFILE_BINS];

static bool levels_of(unsigned from, unsigned to, unsigned hot, unsigned others)
{
    site.has_heat = true;
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        site.heat[b] = (uint16_t)(b >= from && b < to ? hot : others);
    return site_heat_levels(&site, level);
}

static void like_parts_have_no_levels(void **state)
{
    (void)state;
    assert_false(levels_of(0, 0, 0, 312));
    assert_false(levels_of(0, 7, 400, 201)); /* less than twice */
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        assert_int_equal(level[b], 0);
    site.has_heat = false;
    site.heat[3] = 9999;
    assert_false(site_heat_levels(&site, level));
}

static void each_level_is_half_as_hot(void **state)
{
    (void)state;
    assert_true(levels_of(5, 9, 1600, 50));
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        assert_int_equal(level[b], b >= 5 && b < 9 ? HEAT_LEVELS : HEAT_LEVELS - 1);
    assert_true(levels_of(5, 9, 2499, 1)); /* what samples that went astray leave is none */
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        assert_int_equal(level[b], b >= 5 && b < 9 ? HEAT_LEVELS : 0);
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        site.heat[b] = (uint16_t)(9999 >> b / 2);
    assert_true(site_heat_levels(&site, level));
    for (unsigned b = 1; b < PROFILE_BINS; b++) {
        assert_true(level[b] <= level[b - 1]);
        assert_true(level[b] == 0 || site.heat[b] * 2 >= site.heat[b - 1] / 2);
    }
    assert_int_equal(level[0], HEAT_LEVELS);
    assert_int_equal(level[PROFILE_BINS - 1], 0);
}

static void the_hottest_meet_dram_first(void **state)
{
    double bytes, lines;
    (void)state;
    assert_true(levels_of(8, 12, 2000, 70));
    site_heat_level(&site, level, HEAT_LEVELS, &bytes, &lines);
    assert_float_equal(bytes, 0.125, 1e-9);
    assert_float_equal(lines, 8000.0 / (8000 + 28 * 70), 1e-9);
    assert_float_equal(site_heat_met(&site, level, 0.125), lines, 1e-9);
    assert_float_equal(site_heat_met(&site, level, 0.0625), lines / 2, 1e-9);
    assert_float_equal(site_heat_met(&site, level, 0.125 + 0.875 / 4), lines + (1 - lines) / 4,
                       1e-9);
    assert_float_equal(site_heat_met(&site, level, 1), 1, 1e-9);
    assert_float_equal(site_heat_met(&site, level, 0), 0, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(like_parts_have_no_levels),
        cmocka_unit_test(each_level_is_half_as_hot),
        cmocka_unit_test(the_hottest_meet_dram_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
