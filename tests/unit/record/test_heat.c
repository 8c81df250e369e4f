/* SPDX-License-Identifier: BSD-2-Clause
 * Lines by offset within blocks: samples scatter, and only what is more than that is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/rules/heat.h"

#define BLOCK ((size_t)3 * HY_MIB + 5 * HY_PAGE)

static const double cost[ACCESS_KINDS] = {[ACCESS_READ] = 1, [ACCESS_WRITTEN] = 10};
static uint64_t seed = 1;

static uint64_t any(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

/* So many samples, each of 64 lines read or written, half of them in [from, to) of 32 parts. */
static void samples(struct heat *h, unsigned n, unsigned from, unsigned to)
{
    memset(h, 0, sizeof(*h));
    for (unsigned i = 0; i < n; i++) {
        bool write = any(2);
        size_t at =
            any(2) ? any(BLOCK) : (size_t)(BLOCK / 32 * from + any(BLOCK / 32 * (to - from)));
        heat_add(h, at, BLOCK,
                 (const double[ACCESS_KINDS]){
                     [ACCESS_READ] = write ? 0 : 64, [ACCESS_WRITTEN] = write ? 64 : 0});
    }
}

static void what_scatters_is_alike(void **state)
{
    static struct heat h;
    uint16_t ret[PROFILE_BINS];
    unsigned told = 0;
    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        samples(&h, 1 + (unsigned)any(3000), 0, 32);
        told += heat_get(&h, cost, ret);
    }
    assert_true(told <= 4);
    memset(&h, 0, sizeof(h));
    assert_false(heat_get(&h, cost, ret));
    heat_add(&h, 5, BLOCK, (const double[ACCESS_KINDS]){64, 0}); /* one says nothing */
    assert_false(heat_get(&h, cost, ret));
}

static void a_hot_part_is_told(void **state)
{
    static struct heat h;
    uint16_t ret[PROFILE_BINS];
    unsigned sum = 0;
    (void)state;
    samples(&h, 4000, 20, 24);
    assert_true(heat_get(&h, cost, ret));
    for (unsigned b = 0; b < PROFILE_BINS; b++) {
        sum += ret[b];
        if (b >= 20 && b < 24)
            assert_in_range(ret[b], 1150, 1650); /* an eighth and a 64th of 9999 */
        else
            assert_in_range(ret[b], 80, 240);
    }
    assert_in_range(sum, 9999 - 32, 9999 + 32);
    for (unsigned i = 0; i < 300; i++) { /* more than a 16th fell on blocks that were gone */
        assert_true(i >= 250 || heat_get(&h, cost, ret));
        heat_miss(&h, (const double[ACCESS_KINDS]){0, 64});
    }
    assert_false(heat_get(&h, cost, ret));
    /* Of few samples less is believed. */
    samples(&h, 60, 20, 24);
    if (heat_get(&h, cost, ret))
        for (unsigned b = 0; b < PROFILE_BINS; b++)
            assert_true(ret[b] > 20);
}

static void offsets_beyond_the_last_part_are_of_it(void **state)
{
    static struct heat h;
    (void)state;
    heat_add(&h, BLOCK - 1, BLOCK, (const double[ACCESS_KINDS]){64, 0});
    heat_add(&h, 3, 4, (const double[ACCESS_KINDS]){64, 0});
    assert_float_equal((double)h.lines[ACCESS_READ][PROFILE_BINS - 1], 64, 0);
    assert_float_equal((double)h.lines[ACCESS_READ][3], 64, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_scatters_is_alike),
        cmocka_unit_test(a_hot_part_is_told),
        cmocka_unit_test(offsets_beyond_the_last_part_are_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
