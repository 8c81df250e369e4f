/* SPDX-License-Identifier: BSD-2-Clause
 * What becomes of free runs while DRAM is short. */
#include <pthread.h>

#include "heap_util.h"

#define SIZE (2 * HY_MIB)

static char *make_and_free(void)
{
    char *p = heap_alloc(SIZE, &dram);
    memset(p, 1, SIZE);
    char *page = (char *)((uintptr_t)p & ~(HY_PAGE - 1));
    heap_free(p);
    return page;
}

/* Where an idle page costs less than one that is made anew, a block that is made and freed again
 * and again keeps its DRAM, after it was given back too early; when that is over, it goes. */
static void idle_dram_is_kept_where_it_is_cheap(void **state)
{
    struct heap_stats s;
    (void)state;
    void *live = heap_alloc(32 * HY_MIB, &dram);
    heap_trim(HY_DRAM);
    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    far_from = base; /* some PM in it, so that its addresses are kept */
    uint64_t before = charged[HY_DRAM];
    for (int i = 0; i < 8; i++) {
        char *page = make_and_free();
        far_from = page + SIZE / 2;
        far_to = page + SIZE;
    }
    assert_in_range(charged[HY_DRAM] - before, SIZE / 2, SIZE / 2 + 34 * HY_MIB / 32);
    heap_get_stats(HY_DRAM, &s);
    uint64_t retaken = s.retaken_pages;
    assert_in_range(s.idle_pages, SIZE / HY_PAGE / 2, SIZE / HY_PAGE);

    heap_set_dram(HEAP_DRAM_CHEAP, UINT64_MAX);
    (void)make_and_free();
    assert_in_range(charged[HY_DRAM] - before, SIZE, SIZE + HY_MIB / 4);
    heap_get_stats(HY_DRAM, &s);
    assert_in_range(s.retaken_pages - retaken, SIZE / HY_PAGE / 2, SIZE / HY_PAGE);

    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    assert_in_range(charged[HY_DRAM] - before, SIZE / 2, SIZE / 2 + HY_MIB / 4);
    assert_true(heap_is_valid());
    heap_trim(HY_DRAM);
    assert_int_equal(charged[HY_DRAM], before);
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
    far_from = far_to = NULL;
    heap_free(live);
}

/* What has gone back is not charged, and does not go again when DRAM is looked at anew. */
static void what_has_gone_goes_once(void **state)
{
    struct heap_stats s;
    (void)state;
    void *live = heap_alloc(32 * HY_MIB, &dram);
    heap_trim(HY_DRAM);
    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    uint64_t before = charged[HY_DRAM];
    for (int i = 0; i < 3; i++) {
        (void)make_and_free();
        (void)make_and_free();
        for (int k = 0; k < 4; k++)
            heap_set_dram(k % 2 ? HEAP_DRAM_SHORT : HEAP_DRAM_CHEAP, UINT64_MAX);
        heap_get_stats(HY_DRAM, &s);
        assert_in_range(charged[HY_DRAM], before, before + HY_MIB / 4);
        assert_in_range(s.idle_pages, 0, SIZE / HY_PAGE + 64);
        assert_true(heap_is_valid());
    }
    heap_trim(HY_DRAM);
    assert_int_equal(charged[HY_DRAM], before);
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
    heap_free(live);
}

#define BLOCKS 8000u
#define FEW    64u

static unsigned char *block[BLOCKS];

static unsigned char mark_of(unsigned i)
{
    return (unsigned char)(i * 7 + 1);
}

static void fill(unsigned i, size_t size)
{
    if (!block[i])
        memset(block[i] = heap_alloc(size, &dram), mark_of(i), size);
}

static void check_and_free(unsigned i, size_t size)
{
    for (size_t k = 0; k < size; k++)
        assert_int_equal(block[i][k], mark_of(i));
    heap_free(block[i]);
    block[i] = NULL;
}

/* Blocks of `size`, of which one in FEW stays, then others: they may take what those have left. */
static void grow_beside_few(size_t size, size_t other_size)
{
    static void *other[BLOCKS];
    size_t n = HY_MIN(BLOCKS * size / 2 / other_size, BLOCKS);
    uint64_t before = charged[HY_DRAM];
    for (unsigned i = 0; i < BLOCKS; i++)
        fill(i, size);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % FEW)
            check_and_free(i, size);
    for (size_t i = 0; i < n; i++)
        memset(other[i] = heap_alloc(other_size, &dram), 0xaa, other_size);
    /* No more than there was already, which is twice as much as they need. */
    uint64_t grown = charged[HY_DRAM] - before;
    assert_in_range(grown, n * other_size, BLOCKS * size + 8 * HEAP_CHUNK);
    assert_true(heap_is_valid());
    for (unsigned i = 0; i < BLOCKS; i += FEW) /* what stayed is as it was, */
        check_and_free(i, size);
    for (unsigned i = 0; i < BLOCKS; i++) /* and so is what comes where pages had gone */
        fill(i, size);
    assert_true(charged[HY_DRAM] - before >= BLOCKS * size + n * other_size);
    for (unsigned i = 0; i < BLOCKS; i++)
        check_and_free(i, size);
    for (size_t i = 0; i < n; i++)
        heap_free(other[i]);
    heap_trim(HY_DRAM);
    assert_int_equal(charged[HY_DRAM], before);
}

/* Few blocks that live do not keep the pages of their spans from blocks of another size. */
static void few_live_blocks_keep_few_pages(void **state)
{
    (void)state;
    heap_trim(HY_DRAM);
    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    grow_beside_few(320, 2560);
    grow_beside_few(640, 2560);
    grow_beside_few(1152, 2560);
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
}

enum { THREADS = 4, SLOTS = 600, CHANGES = 60000 };

/* Blocks come and go, ever larger ones, and have what was written to them. */
static void *changes_blocks(void *seed)
{
    static const size_t size[] = {64, 320, 640, 1280, 2560, 5000};
    static __thread unsigned char *p[SLOTS];
    static __thread size_t bytes[SLOTS];
    uint64_t r = (uintptr_t)seed;
    for (unsigned i = 0; i < CHANGES; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        unsigned k = (unsigned)(r >> 33) % SLOTS;
        for (size_t n = 0; p[k] && n < bytes[k]; n += 61)
            if (p[k][n] != (unsigned char)k)
                return p[k];
        if (p[k])
            heap_free(p[k]);
        p[k] = NULL;
        if (i > CHANGES - 2 * SLOTS)
            continue;
        bytes[k] = size[(r >> 50) % (1 + i * 6 / CHANGES)];
        memset(p[k] = heap_alloc(bytes[k], &dram), (unsigned char)k, bytes[k]);
    }
    for (unsigned k = 0; k < SLOTS; k++)
        if (p[k])
            heap_free(p[k]);
    return NULL;
}

static void threads_find_what_they_wrote(void **state)
{
    pthread_t thread[THREADS];
    void *wrong;
    (void)state;
    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, changes_blocks, (void *)(i + 1)), 0);
    for (int i = 0; i < 2000; i++)
        heap_set_dram(i % 2 ? HEAP_DRAM_SHORT : HEAP_DRAM_CHEAP, UINT64_MAX);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &wrong), 0);
        assert_null(wrong);
    }
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
    assert_true(heap_is_valid());
}

/* What was touched first lies on DRAM: its free blocks serve before those of later memory. */
static void the_lowest_blocks_serve_first(void **state)
{
    enum { N = 64 };
    static char *p[N];
    unsigned low = 0, high = 0;
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        assert_non_null(p[i] = heap_alloc(HY_PAGE, &dram));
        low = p[i] < p[low] ? i : low;
        high = p[i] > p[high] ? i : high;
    }
    heap_trim(HY_DRAM); /* the thread's cache as well */
    heap_set_dram(HEAP_DRAM_SHORT, UINT64_MAX);
    char *first = p[low];
    heap_free(p[low]);
    cache_flush_thread();
    heap_free(p[high]);
    cache_flush_thread();
    assert_ptr_equal(p[low] = heap_alloc(HY_PAGE, &dram), first);
    p[high] = heap_alloc(HY_PAGE, &dram);
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
    for (unsigned i = 0; i < N; i++)
        heap_free(p[i]);
    assert_true(heap_is_valid());
}

/* Who is about to touch more than DRAM has left gets what lies free here, and not after the next
 * look only. */
static void idle_dram_goes_as_dram_ends(void **state)
{
    (void)state;
    heap_trim(HY_DRAM);
    heap_set_dram(HEAP_DRAM_SHORT, 0);
    heap_set_dram(HEAP_DRAM_SCARCE, 6 * HY_MIB);
    uint64_t before = charged[HY_DRAM];
    heap_free(heap_alloc(HY_MIB, &dram));
    assert_in_range(charged[HY_DRAM] - before, HY_MIB, HY_MIB + HY_PAGE); /* kept for the next */
    void *fits = heap_alloc(4 * HY_MIB, &dram);
    assert_in_range(charged[HY_DRAM] - before, 5 * HY_MIB, 5 * HY_MIB + 2 * HY_PAGE);
    void *large = heap_alloc(4 * HY_MIB, &dram);
    assert_in_range(charged[HY_DRAM] - before, 8 * HY_MIB, 8 * HY_MIB + 2 * HY_PAGE);
    heap_free(fits);
    heap_free(large);
    heap_set_dram(HEAP_DRAM_AMPLE, UINT64_MAX);
    assert_true(heap_is_valid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAP_TEST(the_lowest_blocks_serve_first), HEAP_TEST(few_live_blocks_keep_few_pages),
        HEAP_TEST(threads_find_what_they_wrote),  HEAP_TEST(idle_dram_is_kept_where_it_is_cheap),
        HEAP_TEST(what_has_gone_goes_once),       HEAP_TEST(idle_dram_goes_as_dram_ends),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
