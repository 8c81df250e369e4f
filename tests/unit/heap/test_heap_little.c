/* SPDX-License-Identifier: BSD-2-Clause
 * Where DRAM is little: blocks that are packed, lines that are used again, caches that hold little
 * of it. */
#include "heap_util.h"

/* A size that programs do ask for, 8 KiB and a header, does not take three pages. */
static void what_is_little_more_than_two_pages_is_packed(void **state)
{
    enum { N = 700 };
    static void *p[N];
    uint64_t before = charged[HY_DRAM];
    (void)state;
    for (int i = 0; i < N; i++)
        assert_non_null(p[i] = heap_alloc(8192 + 40, &dram));
    assert_in_range(charged[HY_DRAM] - before, N * 8232, N * 9600);
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    assert_true(heap_is_valid());
}

/* A block that takes the run of another uses the lines that it has used: 129 of its 192, not all.
 */
static void a_run_keeps_its_colour(void **state)
{
    enum { N = 61 };
    void *p[N];
    unsigned same = 0;
    (void)state;
    for (int i = 0; i < N; i++)
        assert_non_null(p[i] = heap_alloc(8 * HY_KIB + 2100, &dram));
    for (int i = 0; i < N; i++) {
        void *before = p[i];
        heap_free(p[i]);
        assert_non_null(p[i] = heap_alloc(8 * HY_KIB + 2100, &dram));
        same += p[i] == before;
    }
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    assert_int_equal(same, N);
    assert_true(heap_is_valid());
}

static void use_all_classes(unsigned rounds)
{
    enum { N = 300 };
    static void *p[N];
    for (unsigned round = 0; round < rounds; round++)
        for (size_t n = 64; n <= 4096; n += 64) {
            for (int i = 0; i < N; i++)
                assert_non_null(p[i] = heap_alloc(n, &dram));
            for (int i = 0; i < N; i++)
                heap_free(p[i]);
        }
}

/* What lies in a cache serves nobody, and 1 MiB may be a third of the DRAM there is. */
static void caches_hold_a_small_part_of_dram(void **state)
{
    (void)state;
    heap_free(heap_alloc(16, &dram));
    heap_bound_caches(4 * HY_MIB);
    use_all_classes(4);
    assert_in_range(hy_cache->holds, 16 * HY_KIB, 128 * HY_KIB);
    heap_bound_caches(UINT64_MAX);
}

/* With HYBRID_START not 0 it is known late how much DRAM there is. */
static void caches_give_back_what_is_too_much_by_now(void **state)
{
    (void)state;
    use_all_classes(4);
    assert_in_range(hy_cache->holds, 256 * HY_KIB, UINT32_MAX);
    heap_bound_caches(4 * HY_MIB);
    use_all_classes(1);
    assert_in_range(hy_cache->holds, 0, 128 * HY_KIB);
    assert_true(heap_is_valid());
    heap_bound_caches(UINT64_MAX);
}

/* A long run that is free serves long requests, and a short one is used again as it was. */
static void a_request_takes_the_run_that_fits_it(void **state)
{
    enum { SHORT = 300 * HY_KIB, LONG = 450 * HY_KIB };
    char *p = heap_alloc(SHORT, &dram), *fence = heap_alloc(SHORT, &dram);
    char *q = heap_alloc(LONG, &dram), *fence2 = heap_alloc(SHORT, &dram);
    (void)state;
    memset(p, 1, SHORT);
    memset(q, 1, LONG);
    heap_free(p);
    heap_free(q);
    char *again = heap_alloc(SHORT, &dram), *more = heap_alloc(LONG, &dram);
    assert_int_equal(granule_of(again), granule_of(p));
    assert_int_equal(granule_of(more), granule_of(q));
    heap_free(again);
    heap_free(more);
    heap_free(fence);
    heap_free(fence2);
    assert_true(heap_is_valid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAP_TEST(what_is_little_more_than_two_pages_is_packed),
        HEAP_TEST(a_run_keeps_its_colour),
        HEAP_TEST(a_request_takes_the_run_that_fits_it),
        HEAP_TEST(caches_hold_a_small_part_of_dram),
        HEAP_TEST(caches_give_back_what_is_too_much_by_now),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
