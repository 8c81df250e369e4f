/* SPDX-License-Identifier: BSD-2-Clause
 * What the heaps keep of memory that the program has freed, and what they give back: pages of runs,
 * caches of threads, free addresses. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap_util.h"
#include "rounds.h"

/* Large blocks begin some lines after a page. */
static char *page_of(void *p)
{
    return (char *)((uintptr_t)p & ~(HY_PAGE - 1));
}

static void what_is_freed_is_discharged(void **state)
{
    (void)state;
    heap_trim(HY_DRAM);
    uint64_t before = charged[HY_DRAM];
    void *a = heap_alloc(10 * HY_MIB + 1, &dram);
    assert_int_equal(charged[HY_DRAM] - before, 10 * HY_MIB + HY_PAGE);
    assert_true(heap_resize_in_place(a, 8 * HY_MIB));
    heap_free(a);
    heap_trim(HY_DRAM);
    assert_int_equal(charged[HY_DRAM], before);
}

static void alter(char *page, size_t bytes)
{
    heap_note_altered(page, bytes);
    assert_int_equal(munmap(page, bytes), 0);
}

/* Pages that a program has unmapped are there again for who comes next, and charged to nobody. */
static void pages_that_were_altered_are_renewed(void **state)
{
    static const size_t size[] = {HY_PAGE, 2 * HY_PAGE, 5 * HY_PAGE, HY_MIB};
    (void)state;
    for (unsigned k = 0; k < HY_ARRAY_SIZE(size); k++) {
        size_t n = size[k], from = n > 2 * HY_PAGE ? HY_PAGE : 0;
        heap_trim(HY_DRAM);
        uint64_t before = charged[HY_DRAM];
        for (int round = 0; round < 3; round++) {
            char *p = heap_alloc_aligned(HY_PAGE, n, &dram);
            memset(p, 1, n);
            alter(p + from, HY_PAGE);
            assert_in_range(heap_usable_size(p), n, 2 * n);
            assert_int_equal(heap_resize_in_place(p, n), true);
            heap_free(p);
            char *q[8];
            for (unsigned i = 0; i < HY_ARRAY_SIZE(q); i++)
                memset(q[i] = heap_alloc_aligned(HY_PAGE, n, &dram), 2, n);
            for (unsigned i = 0; i < HY_ARRAY_SIZE(q); i++)
                heap_free(q[i]);
        }
        heap_trim(HY_DRAM);
        assert_int_equal(charged[HY_DRAM], before);
        assert_true(heap_is_valid());
    }
}

static void pages_that_cannot_be_renewed_are_not_used(void **state)
{
    (void)state;
    char *small = heap_alloc_aligned(HY_PAGE, HY_PAGE, &dram), *large = heap_alloc(HY_MIB, &dram);
    alter(small, HY_PAGE);
    alter(page_of(large) + HY_PAGE, HY_PAGE);
    renew_fails = true;
    heap_free(small);
    heap_free(large);
    renew_fails = false;
    for (int i = 0; i < 200; i++) {
        assert_ptr_not_equal(memset(heap_alloc_aligned(HY_PAGE, HY_PAGE, &dram), 1, HY_PAGE),
                             small);
        assert_ptr_not_equal(page_of(memset(heap_alloc(HY_MIB, &dram), 1, HY_MIB)), page_of(large));
    }
}

static size_t resident(const char *p, size_t bytes)
{
    size_t pages;
    assert_int_equal(os_resident_pages(page_of((char *)(uintptr_t)p), bytes, &pages), 0);
    return pages * HY_PAGE;
}

/* A block that needs half of the pages that another has left: what is charged is what is resident.
 */
static void a_run_that_is_used_again_keeps_what_it_needs(void **state)
{
    enum { N = 40 };
    char *p[N];
    size_t before = charged[HY_DRAM], here = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        char *a = heap_alloc(60000, &dram);
        memset(a, 1, 60000);
        heap_free(a);
        p[i] = heap_alloc(33000, &dram);
        memset(p[i], 2, 33000);
    }
    for (int i = 0; i < N; i++)
        here += resident(p[i], 33000);
    assert_int_equal(here, N * hy_align_up(33000, HY_PAGE));
    heap_trim(HY_DRAM);
    assert_in_range(charged[HY_DRAM] - before, here, here + HEAP_CHUNK);
    /* Nor when it is cut down where it lies. */
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    char *a = heap_alloc(64000, &dram);
    memset(a, 1, 64000);
    assert_true(heap_resize_in_place(a, 33000));
    heap_trim(HY_DRAM);
    assert_int_equal(resident(a, HEAP_CHUNK), hy_align_up(33000, HY_PAGE));
    heap_free(a);
}

/* Of a run that lies dirty all pages would stay in memory, for a few blocks. */
static void few_blocks_keep_few_pages(void **state)
{
    struct heap_want sampled = {.tier = HY_DRAM, .weight = 100, .site = 9, .own_run = true};
    struct heap_stats before, after;
    char *p[2], *dirty = heap_alloc(HY_MIB, &dram);
    (void)state;
    memset(dirty, 1, HY_MIB);
    heap_free(dirty);
    heap_get_stats(HY_DRAM, &before);
    assert_non_null(p[0] = heap_alloc(1100, &dram));
    assert_non_null(p[1] = heap_alloc(1100, &sampled));
    heap_get_stats(HY_DRAM, &after);
    assert_int_equal(after.dirty_bytes, before.dirty_bytes);
    for (int i = 0; i < 2; i++) {
        memset(p[i], 1, 1100);
        assert_int_equal(resident(p[i], HEAP_CHUNK / 2), HY_PAGE);
        heap_free(p[i]);
    }
    /* Where there is no room for more, what lies there serves. */
    heap_trim(HY_DRAM);
    dirty = heap_alloc(HY_MIB, &dram);
    heap_free(dirty);
    limit[HY_DRAM] = charged[HY_DRAM];
    assert_non_null(p[0] = heap_alloc(1100, &dram));
    assert_int_equal(heap_tier_of(p[0]), HY_DRAM);
    assert_true(charged[HY_DRAM] <= limit[HY_DRAM]);
    heap_free(p[0]);
}

enum { IDLE = 100 };
static pthread_barrier_t all_are_idle;

static void *uses_little(void *arg)
{
    for (size_t n = 64; n <= 2560; n += 64) {
        void *p = heap_alloc(n, &dram);
        memset(p, 1, n);
        heap_free(p);
    }
    pthread_barrier_wait(&all_are_idle);
    pthread_barrier_wait(&all_are_idle);
    return arg;
}

/* Each has touched 50 KiB of blocks; most of them are the others' again. */
static void an_idle_thread_keeps_little(void **state)
{
    pthread_t t[IDLE];
    size_t before, after;
    (void)state;
    os_resident_pages(base, taken[HY_DRAM], &before);
    pthread_barrier_init(&all_are_idle, NULL, IDLE + 1);
    for (int i = 0; i < IDLE; i++)
        assert_int_equal(pthread_create(&t[i], NULL, uses_little, NULL), 0);
    pthread_barrier_wait(&all_are_idle);
    os_resident_pages(base, taken[HY_DRAM], &after);
    pthread_barrier_wait(&all_are_idle);
    for (int i = 0; i < IDLE; i++)
        pthread_join(t[i], NULL);
    assert_true((after - before) * HY_PAGE < IDLE * 24 * HY_KIB);
}

static void fill_the_cache(void)
{
    enum { N = 300 };
    void *p[N];
    for (unsigned round = 0; round < rounds(4); round++)
        for (size_t n = 64; n <= 4096; n += 64) {
            for (int i = 0; i < N; i++)
                p[i] = heap_alloc(n, &dram);
            for (int i = 0; i < N; i++)
                heap_free(p[i]);
        }
}

static uint64_t held;

static void *uses_much(void *arg)
{
    heap_free(heap_alloc(16, &dram)); /* has a cache before the others use theirs */
    pthread_barrier_wait(&all_are_idle);
    fill_the_cache();
    __atomic_add_fetch(&held, hy_cache->holds, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all_are_idle);
    return arg;
}

/* What lies in the cache of a thread that sleeps is nobody's: all together it has a bound. */
static void caches_of_many_threads_stay_small(void **state)
{
    const unsigned threads[] = {1, IDLE};
    uint64_t sum[2];
    pthread_t t[IDLE];
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        held = 0;
        pthread_barrier_init(&all_are_idle, NULL, threads[k]);
        for (unsigned i = 0; i < threads[k]; i++)
            assert_int_equal(pthread_create(&t[i], NULL, uses_much, NULL), 0);
        for (unsigned i = 0; i < threads[k]; i++)
            pthread_join(t[i], NULL);
        sum[k] = held;
    }
    assert_true(sum[0] > 512 * HY_KIB);
    assert_true(sum[1] < IDLE * sum[0] / 2 && sum[1] <= 40 * HY_MIB);
}

static size_t released;

static int release(enum hy_tier t, void *p, size_t bytes)
{
    released += bytes;
    return t == HY_DRAM ? os_unmap(p, bytes) : purge(t, p, bytes);
}

static int status_of_child = -1;

static void *forks(void *arg)
{
    heap_free(heap_alloc(16, &dram));
    heap_prefork();
    pid_t pid = fork();
    heap_postfork(pid == 0);
    if (pid == 0) {
        fill_the_cache();
        _exit(hy_cache->holds > 512 * HY_KIB ? 0 : 1);
    }
    (void)waitpid(pid, &status_of_child, 0);
    return arg;
}

/* A child of fork has one thread, however many its parent has. */
static void a_forked_child_has_the_bound_for_itself(void **state)
{
    pthread_t t[IDLE], one;
    (void)state;
    pthread_barrier_init(&all_are_idle, NULL, IDLE + 1);
    for (int i = 0; i < IDLE; i++)
        assert_int_equal(pthread_create(&t[i], NULL, uses_little, NULL), 0);
    pthread_barrier_wait(&all_are_idle);
    assert_int_equal(pthread_create(&one, NULL, forks, NULL), 0);
    pthread_join(one, NULL);
    pthread_barrier_wait(&all_are_idle);
    for (int i = 0; i < IDLE; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(status_of_child, 0);
}

/* Addresses have run out once: what is free gives its own back, and is used again. */
static void addresses_that_ran_out_are_given_back(void **state)
{
    (void)state;
    hy_hg.host.release = release; /* the last test: from now on it does so */
    void *large = heap_alloc(RANGE - 8 * HEAP_GRANULE, &dram);
    if (large)
        heap_free(large);
    assert_true(released > 0);
    for (int i = 0; i < 2; i++) {
        char *p = heap_alloc(100 * HY_MIB, &dram);
        assert_non_null(p);
        assert_int_equal(heap_tier_of(p), HY_DRAM);
        assert_true(p[0] == 0 && p[100 * HY_MIB - 1] == 0);
        memset(p, 1, 100 * HY_MIB);
        size_t before = released;
        heap_free(p);
        assert_true(released > before);
    }
}

static void what_realloc_cuts_off_is_given_back(void **state)
{
    struct heap_stats s;
    size_t pages;
    (void)state;
    char *a = heap_alloc(10 * HY_MIB, &pm);
    memset(a, 1, 10 * HY_MIB);
    assert_true(heap_resize_in_place(a, 7 * HY_MIB));
    heap_get_stats(HY_PM, &s);
    assert_in_range(s.live_bytes, 7 * HY_MIB, 7 * HY_MIB + HY_PAGE);
    heap_trim(HY_PM);
    assert_int_equal(
        os_resident_pages(page_of(a + 7 * HY_MIB) + HY_PAGE, 3 * HY_MIB - HY_PAGE, &pages), 0);
    assert_true(pages * HY_PAGE < HEAP_CHUNK);
    assert_int_equal(a[7 * HY_MIB - 1], 1);
    heap_free(a);
}

static void free_memory_is_given_back_in_time(void **state)
{
    struct heap_stats s;
    (void)state;
    void *a = heap_alloc(6 * HY_MIB, &pm);
    memset(a, 1, 6 * HY_MIB);
    heap_free(a);
    heap_get_stats(HY_PM, &s);
    assert_true(s.dirty_bytes >= 6 * HY_MIB);
    heap_decay(HY_PM, SIZE_MAX); /* freed in this tick: stays */
    heap_get_stats(HY_PM, &s);
    assert_true(s.dirty_bytes >= 6 * HY_MIB);
    heap_decay(HY_PM, SIZE_MAX);
    heap_get_stats(HY_PM, &s);
    assert_int_equal(s.dirty_bytes, 0);
    size_t pages;
    assert_int_equal(os_resident_pages(page_of(a), 6 * HY_MIB, &pages), 0);
    assert_int_equal(pages, 0);
}

static void dirty_memory_has_a_bound(void **state)
{
    struct heap_stats s;
    static void *p[100];
    (void)state;
    for (int i = 0; i < 100; i++) /* what earlier tests taught it is forgotten */
        heap_decay(HY_DRAM, SIZE_MAX);
    for (int i = 0; i < 100; i++)
        p[i] = heap_alloc(HY_MIB, &dram);
    for (int i = 0; i < 100; i++)
        heap_free(p[i]);
    heap_get_stats(HY_DRAM, &s);
    assert_true(s.dirty_bytes <= 12 * HY_MIB);
    assert_int_equal(s.large_blocks, 0);
}

/* Where DRAM is short a block that is made and freed again and again keeps what of it lies on PM,
 * and its addresses; what lies on DRAM is there for others in between. */
static void what_lies_on_pm_is_kept_where_dram_is_short(void **state)
{
    const size_t half = 2 * HY_MIB;
    (void)state;
    for (int i = 0; i < 100; i++)
        heap_decay(HY_DRAM, SIZE_MAX);
    void *live = heap_alloc(32 * HY_MIB, &dram);
    heap_trim(HY_DRAM);
    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    uint64_t before = charged[HY_DRAM];
    char *last = NULL;
    for (int i = 0; i < 6; i++) {
        char *p = heap_alloc(2 * half - HY_PAGE, &dram), *page = page_of(p);
        assert_true(charged[HY_DRAM] - before >= 2 * half - HY_PAGE);
        memset(p, 1, 2 * half - HY_PAGE);
        if (i > 3)
            assert_ptr_equal(page, last);
        last = page;
        far_from = page + half;
        far_to = page + 2 * half;
        heap_free(p);
    }
    /* As much DRAM as a small part of what is live may stay. */
    assert_true(resident(last, half) <= 34 * HY_MIB / 32);
    assert_int_equal(resident(last + half, half), half);
    assert_in_range(charged[HY_DRAM] - before, half, half + 34 * HY_MIB / 32);
    /* A part of it is used: not less is charged than is there. */
    void *part = heap_alloc(half / 2, &dram);
    assert_true(charged[HY_DRAM] - before >= half);
    heap_free(part);
    assert_true(heap_is_valid());
    heap_trim(HY_DRAM);
    assert_int_equal(charged[HY_DRAM], before);
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
    far_from = far_to = NULL;
    heap_free(live);
}

static struct heap_stats stats_of(enum hy_tier t)
{
    struct heap_stats s;
    heap_get_stats(t, &s);
    return s;
}

/* Of 10 to 32 KiB: handed out again, once, and on its own tier; it is free in between. */
static void a_block_of_some_pages_waits_for_its_like(void **state)
{
    (void)state;
    for (size_t n = 11000; n <= 9 * HY_PAGE; n += HY_PAGE)
        for (int t = 0; t < HY_TIERS; t++) {
            const struct heap_want w = {.tier = (enum hy_tier)t, .weight = 1};
            heap_decay(w.tier, 0); /* what waited for others does no more */
            heap_free(heap_alloc(n, &w));
            struct heap_stats before = stats_of(w.tier), waits;
            char *p = heap_alloc(n, &w);
            memset(p, 1, n);
            heap_free(p);
            heap_free(p);
            waits = stats_of(w.tier);
            assert_int_equal(waits.live_bytes, before.live_bytes);
            assert_int_equal(waits.large_blocks, before.large_blocks);
            assert_int_equal(heap_usable_size(p), 0);
            char *other = heap_alloc(n, t == HY_DRAM ? &pm : &dram);
            assert_int_not_equal(heap_tier_of(other), t);
            uint64_t made = stats_of(w.tier).large_allocs;
            char *a = heap_alloc_zeroed(n, &w);
            assert_int_equal(stats_of(w.tier).large_allocs, made); /* the same run */
            char *b = heap_alloc(n, &w);
            assert_ptr_equal(page_of(a), page_of(p));
            assert_ptr_not_equal(a, b);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(a[k], 0);
            heap_free(a);
            heap_free(b);
            heap_free(other);
        }
    assert_true(heap_is_valid());
}

static void leave_blocks_of_some_pages(void)
{
    for (int round = 0; round < 4; round++) {
        void *p[9];
        for (size_t k = 0; k < 9; k++)
            memset(p[k] = heap_alloc((2 + k % 7) * HY_PAGE + 3000, &dram), 1, 9000);
        for (size_t k = 0; k < 9; k++)
            heap_free(p[k]);
    }
}

static void *leaves_blocks(void *unused)
{
    leave_blocks_of_some_pages();
    return unused;
}

/* Of threads that sleep or have ended, of a forked child, and when DRAM is short. */
static void nothing_waits_for_ever(void **state)
{
    enum { N = 40 };
    pthread_t thread[N];
    (void)state;
    heap_trim(HY_DRAM);
    uint64_t before = charged[HY_DRAM];
    for (int how = 0; how < 3; how++) {
        for (int i = 0; i < N; i++) {
            assert_int_equal(pthread_create(&thread[i], NULL, leaves_blocks, NULL), 0);
            assert_int_equal(pthread_join(thread[i], NULL), 0);
        }
        leave_blocks_of_some_pages();
        assert_in_range(charged[HY_DRAM] - before, 1, HY_MIB + HEAP_CHUNK); /* keep_limit */
        pid_t child = how == 2 ? fork() : 0;
        if (child == 0 && how == 0) {
            heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
            leave_blocks_of_some_pages();
            heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
        } else if (child == 0) {
            for (int i = 0; i < 2; i++) /* free, and not used since the last time */
                heap_decay(HY_DRAM, SIZE_MAX);
        }
        if (child == 0 && how == 2)
            _exit(charged[HY_DRAM] != before);
        int status = 0;
        if (child)
            assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        if (!child)
            assert_int_equal(charged[HY_DRAM], before);
    }
    assert_true(heap_is_valid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAP_TEST(what_is_freed_is_discharged),
        HEAP_TEST(a_block_of_some_pages_waits_for_its_like),
        HEAP_TEST(nothing_waits_for_ever),
        HEAP_TEST(what_realloc_cuts_off_is_given_back),
        HEAP_TEST(a_run_that_is_used_again_keeps_what_it_needs),
        HEAP_TEST(what_lies_on_pm_is_kept_where_dram_is_short),
        HEAP_TEST(few_blocks_keep_few_pages),
        HEAP_TEST(an_idle_thread_keeps_little),
        HEAP_TEST(caches_of_many_threads_stay_small),
        HEAP_TEST(a_forked_child_has_the_bound_for_itself),
        HEAP_TEST(pages_that_were_altered_are_renewed),
        HEAP_TEST(free_memory_is_given_back_in_time),
        HEAP_TEST(dirty_memory_has_a_bound),
        HEAP_TEST(addresses_that_ran_out_are_given_back),
        HEAP_TEST(pages_that_cannot_be_renewed_are_not_used),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
