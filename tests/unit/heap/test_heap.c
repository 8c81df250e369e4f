/* SPDX-License-Identifier: BSD-2-Clause
 * The heaps over plain memory: what a program notices of malloc and free, and
 * what the rest of the library relies on (limits, tiers, purging, the map). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/heap.h"
#include "heap/internal.h"
#include "sys/os.h"

#define RANGE (512 * HY_MIB)

static char *base;
static size_t taken[HY_TIERS];
static uint64_t charged[HY_TIERS], limit[HY_TIERS] = {UINT64_MAX, UINT64_MAX};
static bool supplier_dry[HY_TIERS];

static void *take(enum hy_tier t, size_t bytes)
{
    if (supplier_dry[t] || taken[t] + bytes > RANGE)
        return NULL;
    char *p = base + (t == HY_PM ? RANGE : 0) + taken[t];
    taken[t] += bytes;
    assert_int_equal(os_commit(p, bytes), 0);
    return p;
}

static int purge(enum hy_tier t, void *p, size_t bytes)
{
    (void)t;
    return os_purge(p, bytes);
}

static bool charge(enum hy_tier t, size_t bytes, bool force)
{
    if (!force && charged[t] + bytes > limit[t])
        return false;
    charged[t] += bytes;
    return true;
}

static void discharge(enum hy_tier t, size_t bytes)
{
    assert_true(charged[t] >= bytes);
    charged[t] -= bytes;
    heap_reopen(t);
}

static uint64_t room(enum hy_tier t)
{
    return limit[t] - charged[t];
}

/* Memory that the heap was given, but may not use before. */
static bool medium_full;

static bool restore(enum hy_tier t, void *p, size_t bytes)
{
    assert_true(heap_owns(p) && heap_tier_of(p) == t && bytes % HEAP_GRANULE == 0);
    if (t == HY_DRAM)
        return os_replace_by_anon(p, bytes) == 0;
    return !medium_full;
}

static bool trim(enum hy_tier t, void *p, size_t bytes)
{
    return purge(t, p, bytes) == 0;
}

static size_t released;

static int release(enum hy_tier t, void *p, size_t bytes)
{
    released += bytes;
    return t == HY_DRAM ? os_unmap(p, bytes) : purge(t, p, bytes);
}

static int make_heap(void **state)
{
    static const struct heap_host host = {.take = take,
                                          .purge = purge,
                                          .charge = charge,
                                          .discharge = discharge,
                                          .room = room,
                                          .restore = restore,
                                          .trim = trim};
    const size_t bytes[HY_TIERS] = {RANGE, RANGE};
    void *p;
    (void)state;
    if (os_reserve(2 * RANGE, HEAP_GRANULE, &p))
        return -1;
    base = p;
    return heap_init(base, bytes, &host);
}

static int settle(void **state)
{
    (void)state;
    for (int t = 0; t < HY_TIERS; t++) {
        limit[t] = UINT64_MAX;
        supplier_dry[t] = false;
        heap_trim((enum hy_tier)t);
    }
    heap_set_favour(HY_DRAM);
    return heap_is_valid() ? 0 : -1;
}

static const struct heap_want dram = {.tier = HY_DRAM, .weight = 1};
static const struct heap_want pm = {.tier = HY_PM, .weight = 1};

/* PM that was given back cannot be had again: the other tier serves, accounts stay right. */
static void a_medium_without_room_is_not_used(void **state)
{
    void *p[8];
    (void)state;
    for (int i = 0; i < 8; i++)
        assert_non_null(p[i] = heap_alloc(HY_MIB, &pm));
    for (int i = 0; i < 8; i++)
        heap_free(p[i]);
    heap_trim(HY_PM);
    uint64_t before = charged[HY_PM];
    medium_full = true;
    for (int i = 0; i < 8; i++) {
        assert_non_null(p[i] = heap_alloc(HY_MIB, &pm));
        assert_int_equal(heap_tier_of(p[i]), HY_DRAM);
    }
    assert_int_equal(charged[HY_PM], before);
    medium_full = false;
    for (int i = 0; i < 8; i++)
        heap_free(p[i]);
    assert_non_null(p[0] = heap_alloc(HY_MIB, &pm));
    assert_int_equal(heap_tier_of(p[0]), HY_PM);
    heap_free(p[0]);
}

static void every_size_holds_what_it_promises(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 70000; n += n < 2100 ? 1 : 509) {
        unsigned char *p = heap_alloc(n, n & 1 ? &pm : &dram);
        assert_non_null(p);
        assert_true(heap_owns(p));
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_int_equal(heap_tier_of(p), n & 1 ? HY_PM : HY_DRAM);
        size_t usable = heap_usable_size(p);
        assert_true(usable >= n);
        if (n > 128 && n <= SIZECLASS_DENSE)
            assert_true(usable - n <= n / 8 + 16);
        memset(p, 0xa5, usable);
        heap_free(p);
    }
}

static void blocks_do_not_overlap(void **state)
{
    enum { N = 6000 };
    static unsigned char *block[N];
    static size_t size[N];
    uint32_t seed = 42;
    (void)state;
    for (int round = 0; round < 40000; round++) {
        seed = seed * 1664525u + 1013904223u;
        int i = (int)(seed >> 8) % N;
        if (block[i]) {
            for (size_t k = 0; k < size[i]; k += 97)
                assert_int_equal(block[i][k], (unsigned char)i);
            heap_free(block[i]);
        }
        size[i] = (seed >> 20) % (i % 50 == 0 ? 300000u : 600u);
        block[i] = heap_alloc(size[i], i & 1 ? &pm : &dram);
        assert_non_null(block[i]);
        memset(block[i], i, size[i]);
    }
    assert_true(heap_is_valid());
    for (int i = 0; i < N; i++)
        if (block[i])
            heap_free(block[i]);
}

static void zeroed_means_zero_after_reuse(void **state)
{
    (void)state;
    for (size_t n = 1; n < 3 * HY_MIB; n = n * 3 + 7)
        for (int again = 0; again < 3; again++) {
            unsigned char *p = heap_alloc_zeroed(n, &dram);
            assert_non_null(p);
            for (size_t k = 0; k < n; k++)
                if (p[k])
                    fail_msg("byte %zu of %zu is %u", k, n, p[k]);
            memset(p, 0xff, n);
            heap_free(p);
        }
}

static void alignment_is_kept_at_every_power_of_two(void **state)
{
    (void)state;
    for (size_t align = 8; align <= 64 * HY_MIB; align *= 2)
        for (size_t n = 1; n < 200000; n = n * 5 + 3) {
            void *p = heap_alloc_aligned(align, n, &pm);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p & (align - 1), 0);
            assert_true(heap_usable_size(p) >= n);
            memset(p, 1, n);
            heap_free(p);
        }
    assert_true(heap_is_valid());
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    assert_null(heap_alloc(SIZE_MAX, &dram));
    assert_null(heap_alloc((size_t)PTRDIFF_MAX + 1, &dram));
    assert_null(heap_alloc(RANGE + 1, &dram));
    assert_null(heap_alloc_aligned((size_t)1 << 62, 8, &dram));
    assert_null(heap_alloc_aligned(16, SIZE_MAX - 8, &dram));
}

static void a_full_tier_gives_way_to_the_other(void **state)
{
    (void)state;
    limit[HY_DRAM] = charged[HY_DRAM] + 2 * HY_MIB;
    limit[HY_PM] = charged[HY_PM] + 2 * HY_MIB;
    void *p[64];
    unsigned in_pm = 0;
    for (int i = 0; i < 64; i++) {
        p[i] = heap_alloc(100000, &dram);
        assert_non_null(p[i]); /* beyond both limits: DRAM all the same */
        in_pm += heap_tier_of(p[i]) == HY_PM;
    }
    assert_in_range(in_pm, 15, 20);
    for (int i = 0; i < 64; i++)
        heap_free(p[i]);
}

static void nothing_left_is_null_and_recovers(void **state)
{
    (void)state;
    static void *p[40];
    int n = 0;
    while (n < 40 && (p[n] = heap_alloc(40 * HY_MIB, &dram)) != NULL)
        n++;
    assert_in_range(n, 12, 26); /* two ranges of 512 MiB */
    assert_null(heap_alloc(40 * HY_MIB, &pm));
    for (int i = 0; i < n; i++)
        heap_free(p[i]);
    void *again = heap_alloc(200 * HY_MIB, &dram); /* joined again */
    assert_non_null(again);
    heap_free(again);
}

static void small_classes_return_to_the_favoured_tier(void **state)
{
    enum { N = 20000 };
    static void *p[N];
    (void)state;
    limit[HY_DRAM] = charged[HY_DRAM] + 256 * HY_KIB;
    unsigned in_pm = 0;
    for (int i = 0; i < N; i++) {
        p[i] = heap_alloc(64, &dram);
        in_pm += heap_tier_of(p[i]) == HY_PM;
    }
    assert_in_range(in_pm, N - 256 * 1024 / 64 - 2048, N - 2048);
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    heap_trim(HY_DRAM);
    void *q = heap_alloc(64, &dram);
    assert_int_equal(heap_tier_of(q), HY_DRAM);
    heap_free(q);
}

/* Small sizes find their bin by a table of their own. */
static void every_small_size_has_the_bin_of_its_class(void **state)
{
    (void)state;
    for (int t = 0; t < HY_TIERS; t++) {
        heap_set_favour((enum hy_tier)t);
        for (size_t n = 0; n <= SIZECLASS_SMALL; n++) {
            assert_int_equal(hy_hot_step[sizeclass_step(n)], hy_hot_bin[sizeclass_of(n)]);
            assert_int_equal(hy_hot_step[sizeclass_step(n)],
                             heap_hot_offset(heap_bin((enum hy_tier)t, sizeclass_of(n))));
        }
    }
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

/* Large blocks begin some lines after a page. */
static char *page_of(void *p)
{
    return (char *)((uintptr_t)p & ~(HY_PAGE - 1));
}

static void large_blocks_do_not_share_their_place_in_a_page(void **state)
{
    char *p[16], *aligned;
    (void)state;
    for (int i = 0; i < 16; i++) {
        p[i] = heap_alloc(HY_MIB, &dram);
        memset(p[i], i, HY_MIB);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        assert_in_range(heap_usable_size(p[i]), HY_MIB, HY_MIB + HY_PAGE);
        for (int j = 0; j < i; j++)
            assert_int_not_equal((uintptr_t)p[i] % HY_PAGE, (uintptr_t)p[j] % HY_PAGE);
    }
    for (int i = 0; i < 16; i++) {
        assert_true(p[i][0] == i && p[i][HY_MIB - 1] == i);
        assert_true(heap_resize_in_place(p[i], HY_MIB / 2));
        assert_true(heap_usable_size(p[i]) >= HY_MIB / 2);
        heap_free(p[i]);
    }
    /* Who asks for more than a line gets exactly that. */
    aligned = heap_alloc_aligned(HY_PAGE, HY_MIB, &dram);
    assert_int_equal((uintptr_t)aligned % HY_PAGE, 0);
    heap_free(aligned);
}

static size_t resident(const char *p, size_t bytes)
{
    size_t pages;
    assert_int_equal(os_resident_pages(page_of((char *)(uintptr_t)p), bytes, &pages), 0);
    return pages * HY_PAGE;
}

/* A block that needs half of the run that another has left: charged and resident are the same. */
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
        here += resident(p[i], HEAP_GRANULE);
    assert_int_equal(here, N * hy_align_up(33000, HY_PAGE));
    assert_in_range(charged[HY_DRAM] - before, here, here + HEAP_GRANULE);
    /* Nor when it is cut down where it lies. */
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    char *a = heap_alloc(64000, &dram);
    memset(a, 1, 64000);
    assert_true(heap_resize_in_place(a, 33000));
    assert_int_equal(resident(a, HEAP_GRANULE), hy_align_up(33000, HY_PAGE));
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
        assert_int_equal(resident(p[i], HEAP_GRANULE / 2), HY_PAGE);
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

/* The same block twice in the cache would be handed out twice. */
static void a_block_freed_twice_is_handed_out_once(void **state)
{
    (void)state;
    for (size_t n = 16; n <= 4096; n *= 2) {
        for (int i = 0; i < 200; i++) /* a cache with room */
            heap_free(heap_alloc(n, &dram));
        void *a = heap_alloc(n, &dram), *b = heap_alloc(n, &dram);
        heap_free(a);
        heap_free(a);
        heap_free(b);
        heap_free(a);
        void *c = heap_alloc(n, &dram), *d = heap_alloc(n, &dram), *e = heap_alloc(n, &dram);
        assert_true(c != d && d != e && c != e);
        heap_free(c);
        heap_free(d);
        heap_free(e);
    }
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
    for (int round = 0; round < 4; round++)
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
    assert_true(pages * HY_PAGE < HEAP_GRANULE);
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

static void realloc_grows_where_it_lies_when_it_can(void **state)
{
    struct heap_want roomy = dram;
    (void)state;
    roomy.spare = 4 * HY_MIB;
    char *p = heap_alloc(HY_MIB, &roomy);
    memset(p, 7, HY_MIB);
    for (size_t n = HY_MIB; n <= 5 * HY_MIB; n += 100000)
        assert_true(heap_resize_in_place(p, n));
    assert_int_equal(p[HY_MIB - 1], 7);
    assert_false(heap_resize_in_place(p, 100)); /* belongs into a class */
    assert_false(heap_resize_in_place(p, SIZE_MAX));
    heap_free(p);
}

static void wrong_frees_are_ignored(void **state)
{
    (void)state;
    enum { N = 300 };
    void *p[N];
    for (int i = 0; i < N; i++)
        p[i] = heap_alloc(48, &dram);
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    heap_trim(HY_DRAM);
    heap_free(p[7]); /* twice */
    heap_trim(HY_DRAM);
    void *big = heap_alloc(HY_MIB, &dram);
    heap_free((char *)big + HEAP_GRANULE); /* inside */
    heap_free(big);
    assert_true(heap_is_valid());
}

static void a_block_with_a_run_knows_its_site(void **state)
{
    struct heap_want w = {.tier = HY_PM, .site = 77, .weight = 1000, .own_run = true};
    uint16_t site;
    uint32_t weight;
    size_t size;
    (void)state;
    void *p = heap_alloc(24, &w);
    assert_true(heap_site_of(p, &site, &weight, &size));
    assert_int_equal(site, 77);
    assert_int_equal(weight, 1000);
    heap_free(p);
    p = heap_alloc(24, &pm);
    assert_false(heap_site_of(p, &site, &weight, &size));
    heap_free(p);
}

static struct heap_place place_of(const void *p)
{
    struct heap_place place;
    heap_place_of(p, &place);
    return place;
}

static unsigned sampled_blocks;
static size_t sampled_bytes;

static void count_sampled(uint16_t site, unsigned cls, size_t size)
{
    assert_int_equal(site, 9);
    assert_int_equal(cls, sizeclass_of(size));
    sampled_blocks++;
    sampled_bytes += size;
}

/* Whose memory an address is: anywhere in a block, after it grew, and when it is freed. */
static void an_address_tells_whose_memory_it_is(void **state)
{
    (void)state;
    struct heap_want w = {.tier = HY_PM, .weight = 1, .site = 7};
    struct heap_want small = {.tier = HY_DRAM, .weight = 100, .site = 9, .own_run = true};
    heap_label_runs();
    char *big = heap_alloc(10 * HY_MIB, &w);
    char *plain = heap_alloc(100, &dram);
    char *sampled = heap_alloc(100, &small), *sampled2 = heap_alloc(2000, &small);
    assert_true(big && plain && sampled && sampled2);
    for (size_t at = 0; at < 10 * HY_MIB; at += 4097) {
        assert_int_equal(place_of(big + at).what, HEAP_IS_RUN);
        assert_int_equal(place_of(big + at).site, 7);
        assert_int_equal(place_of(big + at).cls, SIZECLASS_COUNT);
    }
    assert_int_equal(place_of(plain + 99).what, HEAP_IS_SMALL);
    assert_int_equal(place_of(plain + 99).cls, sizeclass_of(100));
    assert_int_equal(place_of(sampled + 99).site, 9);
    assert_int_equal(place_of(sampled + 99).cls, sizeclass_of(100));
    /* Not all at the start of a page, or they would meet in the same sets of a cache. */
    assert_int_not_equal((uintptr_t)sampled % HY_PAGE, (uintptr_t)sampled2 % HY_PAGE);
    sampled_blocks = 0;
    heap_each_sampled(count_sampled);
    assert_int_equal(sampled_blocks, 2);
    assert_int_equal(sampled_bytes, 2100);
    if (heap_resize_in_place(big, 20 * HY_MIB))
        assert_int_equal(place_of(big + 20 * HY_MIB - 1).site, 7);
    heap_free(big);
    assert_int_equal(place_of(big + 5 * HY_MIB).site, 7); /* samples come late */
    big = heap_alloc(10 * HY_MIB, &pm);                   /* of no known site */
    assert_int_equal(place_of(big + 5 * HY_MIB).site, 0);
    /* Where the heap has not been yet. */
    assert_int_equal(place_of((char *)hy_heap.base + hy_heap.len - 1).site, 0);
    heap_free(big);
    heap_free(plain);
    heap_free(sampled);
    heap_free(sampled2);
    assert_true(heap_is_valid());
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, settle)
    const struct CMUnitTest tests[] = {
        T(every_size_holds_what_it_promises),
        T(blocks_do_not_overlap),
        T(zeroed_means_zero_after_reuse),
        T(alignment_is_kept_at_every_power_of_two),
        T(absurd_sizes_are_refused),
        T(a_medium_without_room_is_not_used),
        T(a_full_tier_gives_way_to_the_other),
        T(nothing_left_is_null_and_recovers),
        T(small_classes_return_to_the_favoured_tier),
        T(every_small_size_has_the_bin_of_its_class),
        T(what_is_freed_is_discharged),
        T(large_blocks_do_not_share_their_place_in_a_page),
        T(what_realloc_cuts_off_is_given_back),
        T(a_run_that_is_used_again_keeps_what_it_needs),
        T(few_blocks_keep_few_pages),
        T(a_block_freed_twice_is_handed_out_once),
        T(an_idle_thread_keeps_little),
        T(caches_of_many_threads_stay_small),
        T(a_forked_child_has_the_bound_for_itself),
        T(free_memory_is_given_back_in_time),
        T(dirty_memory_has_a_bound),
        T(realloc_grows_where_it_lies_when_it_can),
        T(wrong_frees_are_ignored),
        T(a_block_with_a_run_knows_its_site),
        T(an_address_tells_whose_memory_it_is),
        T(addresses_that_ran_out_are_given_back),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
