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
static uintptr_t check_sum(const struct stripes *s)
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
    return last;
}

static void check(const struct stripes *s)
{
    assert_int_equal(check_sum(s), s->base + s->size);
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
                struct stripes s = {BASE, pages[i] * HY_PAGE, away * HY_PAGE, 1, NULL};
                s.n = stripes_count(&s, most);
                assert_in_range(s.n, 1, HY_MIN(most, STRIPES_MOST));
                check(&s);
            }
}

static void one_is_the_end(void **state)
{
    const struct stripes s = {BASE, 100 * HY_PAGE, 30 * HY_PAGE, 1, NULL};
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
    struct stripes s = {BASE, size, away, 1, NULL};
    (void)state;
    s.n = stripes_count(&s, STRIPES_MOST);
    for (unsigned w = 0; w < 8; w++) {
        uintptr_t from = BASE + size / 8 * w, to = from + size / 8, at;
        size_t there = 0, bytes;
        for (unsigned k = 0; k < s.n; k++)
            if (stripe_away(&s, k, &at, &bytes) && at < to && at + bytes > from)
                there += HY_MIN(at + bytes, to) - HY_MAX(at, from);
        assert_in_range(there, (size_t)(0.97 * (double)away / 8),
                        (size_t)(1.03 * (double)away / 8));
    }
}

static void small_stripes_and_cut_huge_pages_are_not_made(void **state)
{
    uintptr_t at;
    size_t bytes;
    (void)state;
    struct stripes s = {BASE, STRIPES_LEAST - HY_PAGE, HY_PAGE, 1, NULL};
    assert_int_equal(stripes_count(&s, 32), 1);
    s.size = 2 * STRIPES_LEAST;
    assert_int_equal(stripes_count(&s, 32), 2);
    s = (struct stripes){BASE, (size_t)8 << 30, (size_t)3 << 30, 32, NULL};
    for (unsigned k = 0; k + 1 < s.n; k++) {
        assert_true(stripe_away(&s, k, &at, &bytes));
        assert_int_equal((at + bytes) % (2 * HY_MIB), 0);
    }
    check(&s);
}

/* Pages of part `p` (of 32) on PM. */
static size_t away_of_part(const struct stripes *s, unsigned p)
{
    uintptr_t from = s->base + s->size / 32 * p, to = from + s->size / 32, at;
    size_t sum = 0, bytes;
    for (unsigned k = 0; k < s->n; k++)
        if (stripe_away(s, k, &at, &bytes) && at < to && at + bytes > from)
            sum += HY_MIN(at + bytes, to) - HY_MAX(at, from);
    return sum / HY_PAGE;
}

/* What is used most lies on DRAM first, wherever it is; of the level that is there in part, each
 * part has the same. */
static void the_hot_parts_come_first(void **state)
{
    static const uint8_t level[32] = {
        [5] = 8, [6] = 8, [20] = 8, [21] = 7, [22] = 7, [23] = 7, [24] = 7, [31] = 6};
    struct stripes s = {BASE, 3200 * HY_PAGE, 2700 * HY_PAGE, 1, level};
    (void)state;
    s.n = stripes_count(&s, STRIPES_MOST);
    assert_int_equal(s.n, 32);
    check(&s); /* 300 pages of the first level and 200 of 400 of the next */
    for (unsigned p = 0; p < 32; p++)
        assert_int_equal(away_of_part(&s, p), level[p] == 8 ? 0 : level[p] == 7 ? 50 : 100);
    uintptr_t at;
    size_t bytes, sum = 0;
    unsigned ranges = 0;
    for (unsigned k = 0; stripes_next(&s, &k, &at, &bytes); ranges++)
        sum += bytes;
    assert_int_equal(sum, s.away);
    assert_int_equal(ranges, 6); /* before, between and behind the three, and in four of the next */
    s.away = 3000 * HY_PAGE;     /* not even all of the first */
    check(&s);
    for (unsigned p = 0; p < 32; p++)
        assert_in_range(away_of_part(&s, p), level[p] == 8 ? 33 : 100, level[p] == 8 ? 34 : 100);
    /* Small ones are cut into fewer stripes than parts. */
    for (size_t pages = 32; pages < 200; pages += 7)
        for (size_t away = 1; away < pages; away += 5) {
            s = (struct stripes){BASE, pages * HY_PAGE, away * HY_PAGE, 1, level};
            s.n = stripes_count(&s, STRIPES_MOST);
            check_sum(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_or_told_twice),
        cmocka_unit_test(one_is_the_end),
        cmocka_unit_test(each_eighth_has_the_same_share),
        cmocka_unit_test(the_hot_parts_come_first),
        cmocka_unit_test(small_stripes_and_cut_huge_pages_are_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
