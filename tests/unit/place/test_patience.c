/* SPDX-License-Identifier: BSD-2-Clause
 * What is kept for one who says that it wants DRAM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place/rules/patience.h"

#define MB    HY_MIB
#define STEP  (PATIENCE_NS / 10)
#define WANTS (1000 * MB)

static uint64_t now_ns;

static uint64_t looks(struct patience *p, int n, uint64_t held, uint64_t wants, bool free)
{
    uint64_t kept = 0;

    for (int i = 0; i < n; i++)
        kept = patience_keeps(p, held, wants, free, now_ns += STEP);
    return kept;
}

static void who_takes_nothing_gets_nothing_kept(void **state)
{
    struct patience p = {0};

    (void)state;
    assert_int_equal(looks(&p, 10, 5 * MB, WANTS, true), WANTS);
    assert_int_equal(looks(&p, 1, 5 * MB, WANTS, true), 0);
    assert_int_equal(looks(&p, 100, 5 * MB, WANTS, true), 0);
    /* It takes, and is believed in proportion. */
    assert_int_equal(looks(&p, 10, 6 * MB, WANTS, true), 64 * MB);
    assert_int_equal(looks(&p, 10, 30 * MB, WANTS, true), WANTS);
}

static void where_nothing_is_free_nobody_is_doubted(void **state)
{
    struct patience p = {0};

    (void)state;
    assert_int_equal(looks(&p, 1000, 5 * MB, WANTS, false), WANTS);
    assert_int_equal(looks(&p, 9, 5 * MB, WANTS, true), WANTS);
    assert_int_equal(looks(&p, 1000, 5 * MB, WANTS, false), WANTS);
    assert_int_equal(looks(&p, 1, 5 * MB, WANTS, true), 0);
}

/* Moves are slow: a hundredth of it in each while. */
static void who_takes_slowly_is_believed(void **state)
{
    struct patience p = {0};

    (void)state;
    for (uint64_t held = 0; held < WANTS; held += WANTS / 100) {
        uint64_t kept = looks(&p, 10, held, WANTS - held, true);
        assert_true(kept >= HY_MIN(WANTS - held, WANTS / 2));
    }
}

static void nothing_buys_time(void **state)
{
    struct patience p = {0};

    (void)state;
    /* To wish by turns. */
    for (int i = 0; i < 11; i++) {
        looks(&p, 1, 5 * MB, 0, true);
        looks(&p, 1, 5 * MB, WANTS, true);
    }
    assert_int_equal(looks(&p, 1, 5 * MB, WANTS, true), 0);
    /* To give back and take again. */
    looks(&p, 10, 100 * MB, WANTS, true);
    for (int i = 0; i < 20; i++) {
        looks(&p, 5, 0, WANTS, true);
        looks(&p, 6, 100 * MB, WANTS, true);
    }
    assert_int_equal(looks(&p, 1, 100 * MB, WANTS, true), 0);
    /* To come again as somebody else. */
    patience_another(&p);
    assert_int_equal(looks(&p, 1, 0, WANTS, true), 0);
    assert_int_equal(looks(&p, 10, 50 * MB, WANTS, true), WANTS);
    /* A clock that stood still, or we did: one look is a quarter of it at most. */
    struct patience q = {0};
    looks(&q, 1, 0, WANTS, true);
    now_ns += 100 * PATIENCE_NS;
    assert_int_equal(looks(&q, 1, 0, WANTS, true), WANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_takes_nothing_gets_nothing_kept),
        cmocka_unit_test(where_nothing_is_free_nobody_is_doubted),
        cmocka_unit_test(who_takes_slowly_is_believed),
        cmocka_unit_test(nothing_buys_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
