/* SPDX-License-Identifier: BSD-2-Clause
 * A block that lies on two memories: which of its pages on which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pages/rules/stripes.h"

#define BASE ((uintptr_t)0x7f0012345000)

/* Parts on PM do not meet, lie within the block, and are all that was asked for. */
static void check(const struct stripes *s)
{
    size_t sum = 0, bytes;
    uintptr_t at, last = s->base;

    for (unsigned k = 0; k < s->n; k++) {
        bool any = stripe_away(s, k, &at, &bytes);
        assert_int_equal(any, bytes > 0);
        assert_int_equal(at % HY_PAGE | bytes % HY_PAGE, 0);
        assert_true(at >= last && at + bytes <= s->base + s->size);
        last = at + bytes;
        sum += bytes;
    }
    assert_int_equal(sum, s->away);
    assert_int_equal(last, s->base + s->size);
}

static void nothing_is_lost_or_told_twice(void **state)
{
    static const size_t pages[] = {2, 31, 32, 33, 1000, 8192, 262144, (size_t)300 << 18};
    static const double share[] = {0, 0.001, 0.2, 0.5, 0.7, 0.999, 1};
    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(pages); i++)
        for (size_t k = 0; k < HY_ARRAY_SIZE(share); k++)
            for (unsigned most = 1; most <= 64; most *= 2) {
                size_t away = (size_t)((double)pages[i] * share[k]);
                away = HY_MIN(HY_MAX(away, 1u), pages[i] - 1);
                struct stripes s = {BASE, pages[i] * HY_PAGE, away * HY_PAGE, 1};
                s.n = stripes_count(s.size, most);
                assert_in_range(s.n, 1, HY_MIN(most, STRIPES_MOST));
                check(&s);
            }
}

static void one_is_the_end(void **state)
{
    const struct stripes s = {BASE, 100 * HY_PAGE, 30 * HY_PAGE, 1};
    uintptr_t at;
    size_t bytes;
    (void)state;
    assert_true(stripe_away(&s, 0, &at, &bytes));
    assert_int_equal(at, BASE + 70 * HY_PAGE);
    assert_int_equal(bytes, 30 * HY_PAGE);
}

/* Whoever works on a part of the block has as much of it on PM as the others. */
static void each_eighth_has_the_same_share(void **state)
{
    const size_t size = 33 * HY_MIB + 3 * HY_PAGE, away = 19 * HY_MIB;
    struct stripes s = {BASE, size, away, stripes_count(size, STRIPES_MOST)};
    (void)state;
    for (unsigned w = 0; w < 8; w++) {
        uintptr_t from = BASE + size / 8 * w, to = from + size / 8, at;
        size_t there = 0, bytes;
        for (unsigned k = 0; k < s.n; k++)
            if (stripe_away(&s, k, &at, &bytes) && at < to && at + bytes > from)
                there += HY_MIN(at + bytes, to) - HY_MAX(at, from);
        assert_in_range(there, (size_t)(0.97 * (double)away / 8), (size_t)(1.03 * (double)away / 8));
    }
}

static void small_stripes_and_cut_huge_pages_are_not_made(void **state)
{
    uintptr_t at;
    size_t bytes;
    (void)state;
    assert_int_equal(stripes_count(STRIPES_LEAST - 1, 32), 1);
    assert_int_equal(stripes_count(2 * STRIPES_LEAST, 32), 2);
    struct stripes s = {BASE, (size_t)8 << 30, (size_t)3 << 30, 32};
    for (unsigned k = 0; k + 1 < s.n; k++) {
        assert_true(stripe_away(&s, k, &at, &bytes));
        assert_int_equal((at + bytes) % (2 * HY_MIB), 0);
    }
    check(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_or_told_twice),
        cmocka_unit_test(one_is_the_end),
        cmocka_unit_test(each_eighth_has_the_same_share),
        cmocka_unit_test(small_stripes_and_cut_huge_pages_are_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
