/* SPDX-License-Identifier: BSD-2-Clause
 * Who may have a free block or span. Blocks smaller than a cache line: whoever frees another
 * thread's does not get it again, and what threads leave behind is used. */
#include "heap_util.h"

#include <pthread.h>

#define N 3000

struct blocks {
    char *p[N];
    size_t n;
};

static void get_all(struct blocks *b)
{
    for (int i = 0; i < N; i++)
        b->p[i] = heap_alloc(b->n, &dram);
}

static void free_all(struct blocks *b)
{
    for (int i = 0; i < N; i++)
        heap_free(b->p[i]);
}

static void in_a_thread(void *(*fn)(void *arg), void *arg)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
    pthread_join(t, NULL);
}

static struct blocks given, got;

/* Every other one: what is left lies in the lines of what is freed. */
static void *frees_half_and_gets_more(void *arg)
{
    (void)arg;
    for (int i = 0; i < N; i += 2)
        heap_free(given.p[i]);
    get_all(&got);
    return NULL;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (char *const *)a, y = (uintptr_t) * (char *const *)b;
    return (x > y) - (x < y);
}

static bool in_a_line_of(const struct blocks *sorted, const char *p)
{
    for (int i = 1; i < N; i += 2) {
        uintptr_t other = (uintptr_t)sorted->p[i];
        if (other / LINE <= ((uintptr_t)p + sorted->n - 1) / LINE &&
            (other + sorted->n - 1) / LINE >= (uintptr_t)p / LINE)
            return true;
    }
    return false;
}

static void a_line_is_not_for_two_threads(void **state)
{
    (void)state;
    for (size_t n = 16; n <= 64; n += 16) {
        unsigned shared = 0;
        given.n = got.n = n;
        get_all(&given);
        qsort(given.p, N, sizeof(given.p[0]), by_address);
        in_a_thread(frees_half_and_gets_more, NULL);
        for (int i = 0; i < N; i++)
            shared += in_a_line_of(&given, got.p[i]);
        assert_int_equal(shared, 0);
        for (int i = 1; i < N; i += 2)
            heap_free(given.p[i]);
        free_all(&got);
    }
    heap_trim(HY_DRAM);
    assert_true(heap_is_valid());
}

static void *frees_all(void *b)
{
    free_all(b);
    return NULL;
}

static uint64_t live_bytes(void)
{
    struct heap_stats s;
    heap_get_stats(HY_DRAM, &s);
    return s.live_bytes;
}

/* Who makes blocks and who frees them are two threads, for ever. */
static void what_others_free_comes_back(void **state)
{
    uint64_t after_one = 0;
    (void)state;
    given.n = 32;
    for (int round = 0; round < 50; round++) {
        get_all(&given);
        in_a_thread(frees_all, &given);
        if (round == 0)
            after_one = live_bytes();
    }
    assert_true(live_bytes() <= after_one + (64 << 10));
    assert_true(heap_is_valid());
}

static struct blocks many[8]; /* more than a span */

static void *makes_many(void *arg)
{
    for (int k = 0; k < 8; k++)
        get_all(&many[k]);
    return arg;
}

/* One thread makes a lot and ends; half of it is freed, and another thread has use for it. */
static void what_a_thread_leaves_is_used(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++)
        many[k].n = 16;
    in_a_thread(makes_many, NULL);
    for (int i = 0; i < 8 * N; i += 2)
        heap_free(many[i / N].p[i % N]);
    cache_flush_thread();
    uint64_t before = live_bytes();
    for (int i = 0; i < 8 * N; i += 2)
        many[i / N].p[i % N] = heap_alloc(16, &dram);
    assert_int_equal(live_bytes(), before);
    for (int k = 0; k < 8; k++)
        free_all(&many[k]);
    cache_flush_thread();
    assert_true(heap_is_valid());
}

/* Some classes have been in use; then one alone needs spans. */
static void an_empty_span_is_anybodys(void **state)
{
    static const size_t size[] = {1024, 1152, 1280, 1408, 1536, 1664, 1792, 1920};
    enum { SPAN = SPAN_GRANULES * HEAP_GRANULE };
    static char *p[HY_ARRAY_SIZE(size) * SPAN / 2048];
    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(p); i++)
        p[i] = heap_alloc(size[i % HY_ARRAY_SIZE(size)], &dram);
    for (unsigned i = 0; i < HY_ARRAY_SIZE(p); i++)
        heap_free(p[i]);
    cache_flush_thread();
    uint64_t before = live_bytes();
    for (unsigned i = 0; i < HY_ARRAY_SIZE(p); i++) /* as much as they all had together */
        p[i] = heap_alloc(2048, &dram);
    assert_true(live_bytes() <= before + SPAN);
    for (unsigned i = 0; i < HY_ARRAY_SIZE(p); i++)
        heap_free(p[i]);
    assert_true(heap_is_valid());
}

/* Blocks of a size that is asked for no more do not stay in the cache, each in a span. */
static void what_a_thread_does_not_use_goes_back(void **state)
{
    (void)state;
    given.n = 2304;
    got.n = 64;
    get_all(&given);
    for (int i = 0; i < N; i++) /* the last ones freed lie far apart */
        heap_free(given.p[i * 29 % N]);
    uint64_t before = live_bytes();
    for (int round = 0; round < 100; round++) {
        get_all(&got);
        free_all(&got);
    }
    assert_true(live_bytes() + 4 * SPAN_GRANULES * HEAP_GRANULE <= before);
    assert_true(heap_is_valid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAP_TEST(a_line_is_not_for_two_threads),        HEAP_TEST(what_others_free_comes_back),
        HEAP_TEST(what_a_thread_leaves_is_used),         HEAP_TEST(an_empty_span_is_anybodys),
        HEAP_TEST(what_a_thread_does_not_use_goes_back),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
