/* SPDX-License-Identifier: BSD-2-Clause
 * The heaps over plain memory: what a program notices of malloc and free, and which tier and
 * site a block is of. What the heaps keep and give back: test_heap_memory.c. */
#include "heap_util.h"

/* What every program may have many of, records of one odd size, must not leave the same lines of
 * each 64 KiB unused: caches would serve them with a part of their sets only. Each place in 64 KiB
 * where a block can begin is counted. */
static void like_blocks_begin_everywhere(void **state)
{
    enum { N = 16 * 25, SIZE = 2560 };
    static char *p[N];
    static unsigned at[HEAP_CHUNK / 512];
    unsigned places = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        assert_non_null(p[i] = heap_alloc(SIZE, &dram));
        assert_int_equal((uintptr_t)p[i] % 512, 0); /* as aligned as its size */
        places += at[(uintptr_t)p[i] % HEAP_CHUNK / 512]++ == 0;
    }
    for (int i = 0; i < N; i++)
        heap_free(p[i]);
    assert_true(places > 90); /* of 128; without colours 25 */
    assert_true(heap_is_valid());
}

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
        if (n > 128 && n <= SIZECLASS_MAX)
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

static void a_large_block_lies_across_the_end_of_dram(void **state)
{
    const size_t n = 10 * HY_MIB, left = 3 * HY_MIB + HY_PAGE;
    uint64_t before[HY_TIERS] = {charged[HY_DRAM], charged[HY_PM]};
    (void)state;
    may_split = true;
    limit[HY_DRAM] = charged[HY_DRAM] + left;
    char *p = heap_alloc(n, &dram);
    size_t whole = heap_usable_size(p);
    assert_int_equal(heap_tier_of(p), HY_DRAM);
    assert_int_equal(charged[HY_DRAM] - before[HY_DRAM], left);
    assert_false(split_striped); /* its end, as first touch would have it */
    assert_ptr_equal(split_block + split_size,
                     (char *)((uintptr_t)p & ~(HY_PAGE - 1)) + hy_align_up(whole, HY_PAGE));
    assert_in_range(split_bytes, n - left, n - left + 2 * HY_PAGE);
    assert_int_equal(charged[HY_PM] - before[HY_PM], split_bytes);
    memset(p, 1, n);
    /* Its end would lie in the middle, or on DRAM beyond the limit. */
    assert_false(heap_resize_in_place(p, 2 * n));
    assert_false(heap_resize_in_place(p, n / 2));
    /* No room at all, or too little: the other tier as a whole. */
    char *q = heap_alloc(n, &dram);
    assert_int_equal(heap_tier_of(q), HY_PM);
    heap_free(q);
    heap_free(p);
    assert_null(split_block);
    heap_trim(HY_DRAM);
    heap_trim(HY_PM);
    assert_int_equal(charged[HY_DRAM], before[HY_DRAM]);
    assert_int_equal(charged[HY_PM], before[HY_PM]);
    /* The same memory, as a whole again, and zero. */
    limit[HY_DRAM] = UINT64_MAX;
    p = heap_alloc_zeroed(n, &dram);
    for (size_t i = 0; i < n; i += HY_PAGE)
        assert_int_equal(p[i], 0);
    assert_null(split_block);
    heap_free(p);
}

static void a_block_for_pm_may_have_a_part_on_dram(void **state)
{
    static const uint8_t alike[32];
    const size_t n = 10 * HY_MIB, first = 3 * HY_MIB;
    uint64_t before[HY_TIERS] = {charged[HY_DRAM], charged[HY_PM]};
    struct heap_want w = pm;
    (void)state;
    may_split = true;
    w.part = first;
    w.level = alike;
    char *p = heap_alloc(n, &w);
    assert_int_equal(heap_tier_of(p), HY_DRAM);
    assert_in_range(charged[HY_DRAM] - before[HY_DRAM], first - HY_PAGE, first);
    assert_int_equal(charged[HY_PM] - before[HY_PM], split_bytes);
    assert_in_range(split_bytes, n - first, n - first + 2 * HY_PAGE);
    assert_true(split_striped);
    memset(p, 1, n);
    heap_free(p);
    assert_null(split_block);
    /* Which of its pages are in memory is known to nobody: none is kept. */
    assert_int_equal(charged[HY_DRAM], before[HY_DRAM]);
    assert_int_equal(charged[HY_PM], before[HY_PM]);
    /* Where nothing is split: PM, as was asked for. */
    may_split = false;
    p = heap_alloc(n, &w);
    assert_int_equal(heap_tier_of(p), HY_PM);
    heap_free(p);
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
    heap_free(heap_alloc(1, &dram)); /* this thread has a cache */
    for (int t = 0; t < HY_TIERS; t++) {
        heap_set_favour((enum hy_tier)t);
        for (size_t n = 0; n <= SIZECLASS_SMALL; n++) {
            unsigned bin = heap_own_bin(hy_cache, (enum hy_tier)t, sizeclass_of(n));
            assert_int_equal(hy_cache->hot_step[sizeclass_step(n)],
                             hy_cache->hot_bin[sizeclass_of(n)]);
            assert_int_equal(hy_cache->hot_step[sizeclass_step(n)], heap_hot_offset(bin));
            assert_int_equal(heap_bin_tier(bin), t);
            assert_int_equal(heap_bin_class(bin), sizeclass_of(n));
        }
    }
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

static struct heap_origin place_of(const void *p)
{
    struct heap_origin place;
    heap_origin_of(p, &place);
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

static unsigned reuses;

static void note_reuse(void)
{
    reuses++;
}

/* Whose memory an address is: anywhere in a block, after it grew, and when it is freed. */
static void an_address_tells_whose_memory_it_is(void **state)
{
    (void)state;
    struct heap_want w = {.tier = HY_PM, .weight = 1, .site = 7};
    struct heap_want small = {.tier = HY_DRAM, .weight = 100, .site = 9, .own_run = true};
    heap_label_runs(note_reuse);
    char *big = heap_alloc(10 * HY_MIB, &w);
    char *plain = heap_alloc(100, &dram);
    char *sampled = heap_alloc(100, &small), *sampled2 = heap_alloc(2000, &small);
    assert_true(big && plain && sampled && sampled2);
    for (size_t at = 0; at < 10 * HY_MIB; at += 4097) {
        assert_int_equal(place_of(big + at).what, HEAP_IS_RUN);
        assert_int_equal(place_of(big + at).site, 7);
        assert_int_equal(place_of(big + at).cls, HEAP_POOLS);
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
    assert_int_equal(place_of(big + 5 * HY_MIB).site, 7); /* samples come late, */
    assert_int_equal(reuses, 0);                          /* so who reads them is told before */
    big = heap_alloc(10 * HY_MIB, &pm);                   /* of no known site */
    assert_int_equal(place_of(big + 5 * HY_MIB).site, 0);
    assert_int_equal(reuses, 1);
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
    const struct CMUnitTest tests[] = {
        HEAP_TEST(every_size_holds_what_it_promises),
        HEAP_TEST(blocks_do_not_overlap),
        HEAP_TEST(like_blocks_begin_everywhere),
        HEAP_TEST(zeroed_means_zero_after_reuse),
        HEAP_TEST(alignment_is_kept_at_every_power_of_two),
        HEAP_TEST(absurd_sizes_are_refused),
        HEAP_TEST(a_medium_without_room_is_not_used),
        HEAP_TEST(a_full_tier_gives_way_to_the_other),
        HEAP_TEST(a_large_block_lies_across_the_end_of_dram),
        HEAP_TEST(a_block_for_pm_may_have_a_part_on_dram),
        HEAP_TEST(nothing_left_is_null_and_recovers),
        HEAP_TEST(small_classes_return_to_the_favoured_tier),
        HEAP_TEST(every_small_size_has_the_bin_of_its_class),
        HEAP_TEST(large_blocks_do_not_share_their_place_in_a_page),
        HEAP_TEST(a_block_freed_twice_is_handed_out_once),
        HEAP_TEST(realloc_grows_where_it_lies_when_it_can),
        HEAP_TEST(wrong_frees_are_ignored),
        HEAP_TEST(a_block_with_a_run_knows_its_site),
        HEAP_TEST(an_address_tells_whose_memory_it_is),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
