/* SPDX-License-Identifier: BSD-2-Clause
 * What an address in the heaps belongs to: for samples of accesses, and for tasks. Nothing is
 * locked, so the answer may be of a moment ago. */
#include "heap/altered.h"

/* Only blocks with sites are asked about, so others pay nothing. */
static void (*before_reuse)(void);

/* Blocks of one site follow each other in the same place: their lines are the site's in any case.
 */
static bool was_of_another(uint32_t i, uint32_t len, uint16_t site)
{
    for (uint32_t k = 0; k < len; k++)
        if (hy_hg.site[i + k] != 0 && hy_hg.site[i + k] != site)
            return true;
    return false;
}

void places_label(uint32_t i, uint32_t len, uint16_t site)
{
    void (*before)(void) = __atomic_load_n(&before_reuse, __ATOMIC_RELAXED);
    if (HY_LIKELY(!before))
        return;
    if (was_of_another(i, len, site))
        before();
    for (uint32_t k = 0; k < len; k++)
        hy_hg.site[i + k] = site;
}

void heap_label_runs(void (*before)(void))
{
    __atomic_store_n(&before_reuse, before, __ATOMIC_RELAXED);
}

/* Reads what others write meanwhile, and says so; for the thread sanitizer as well. */
#define READS_RACED __attribute__((no_sanitize_thread))

/* The last granule up to i whose map byte says something; eight are looked at once. */
READS_RACED static uint32_t begin_before(uint32_t i, uint32_t first)
{
    while (i > first && __atomic_load_n(&hy_heap.map[i], __ATOMIC_RELAXED) == 0) {
        const uint64_t *word = (const void *)(hy_heap.map + (i & ~7u));
        bool skip = i % 8 == 7 && i - first >= 8 && __atomic_load_n(word, __ATOMIC_RELAXED) == 0;
        i -= skip ? 8 : 1;
    }
    return i;
}

/* What a sampled block of n bytes stands for. */
static unsigned pool_of(size_t n)
{
    if (n <= SIZECLASS_MAX)
        return sizeclass_of(n);
    if (n > HEAP_POOLED_MAX)
        return HEAP_POOLS;
    return SIZECLASS_COUNT + 63u - (unsigned)__builtin_clzl((n - 1) / SIZECLASS_MAX);
}

/* A block among pages, if it is of a size that is sampled: what is near before it is looked at. */
static const struct granule *pooled_around(uint32_t i, uint32_t first)
{
    uint32_t most = (uint32_t)(HEAP_POOLED_MAX / HEAP_GRANULE);
    uint32_t head = begin_before(i, i - first > most ? i - most : first);
    const struct granule *g = &hy_hg.g[head];
    bool is =
        __atomic_load_n(&hy_heap.map[head], __ATOMIC_RELAXED) == HEAP_LARGE && i - head < g->len;
    return is && g->asked <= HEAP_POOLED_MAX ? g : NULL;
}

void heap_origin_of(const void *address, struct heap_origin *ret)
{
    uint32_t i = granule_of(address);
    enum hy_tier t = granule_tier(i);

    *ret = (struct heap_origin){HEAP_IS_RUN, 0, HEAP_POOLS};
    if (i >= tables_committed(t))
        return; /* the supplier's own records */
    unsigned v = __atomic_load_n(&hy_heap.map[i], __ATOMIC_RELAXED);
    if (v == HEAP_ALTERED)
        v = altered_bin(i);
    if (v >= 1 && v <= HEAP_BINS) {
        ret->what = HEAP_IS_SMALL;
        ret->cls = (uint8_t)heap_bin_class(v);
        return;
    }
    const struct granule *g = pooled_around(i, hy_hg.first[t]);
    ret->site = hy_hg.site[i];
    if (g && (g->weight > 1 || g->site == 0))
        ret->cls = (uint8_t)pool_of(g->asked);
    if (g && g->site == 0)
        ret->what = HEAP_IS_SMALL;
}

/* A block that goes meanwhile has something else where its size was: so the map is asked again, and
 * no block is larger than what is left of the heap. */
READS_RACED bool heap_block_of(const void *address, uintptr_t *ret_base, size_t *ret_bytes)
{
    uintptr_t at = (uintptr_t)address;
    if (at - hy_heap.base >= hy_heap.len)
        return false;
    enum hy_tier t = granule_tier(granule_of(address));
    uint32_t end = tables_committed(t), i = granule_of(address);
    if (i >= end)
        return false;
    i = begin_before(i, hy_hg.first[t]);
    if (__atomic_load_n(&hy_heap.map[i], __ATOMIC_ACQUIRE) != HEAP_LARGE)
        return false;
    uintptr_t base = (uintptr_t)granule_addr(i);
    uint64_t size = __atomic_load_n(&hy_hg.g[i].size, __ATOMIC_ACQUIRE);
    if (at >= base + size || size > (uint64_t)(end - i) << HEAP_GRANULE_SHIFT ||
        __atomic_load_n(&hy_heap.map[i], __ATOMIC_RELAXED) != HEAP_LARGE)
        return false;
    *ret_base = base;
    *ret_bytes = size;
    return true;
}

/* A run that goes meanwhile may become part of a span, whose bitmap lies where the run's numbers
 * were: so the map is asked again. */
READS_RACED static bool sampled_at(uint32_t i, uint16_t *ret_site, size_t *ret_asked)
{
    const struct granule *g = &hy_hg.g[i];
    if (__atomic_load_n(&hy_heap.map[i], __ATOMIC_ACQUIRE) != HEAP_LARGE)
        return false;
    *ret_site = __atomic_load_n(&g->site, __ATOMIC_RELAXED);
    *ret_asked = __atomic_load_n(&g->asked, __ATOMIC_RELAXED);
    bool is = __atomic_load_n(&g->weight, __ATOMIC_ACQUIRE) > 1;
    return is && *ret_site && *ret_asked <= HEAP_POOLED_MAX &&
           __atomic_load_n(&hy_heap.map[i], __ATOMIC_RELAXED) == HEAP_LARGE;
}

void heap_each_sampled(void (*fn)(uint16_t site, unsigned cls, size_t size))
{
    for (int t = 0; t < HY_TIERS; t++) {
        uint32_t end = tables_committed((enum hy_tier)t);
        uint16_t site;
        size_t asked;
        for (uint32_t i = hy_hg.first[t]; i < end; i++)
            if (sampled_at(i, &site, &asked))
                fn(site, pool_of(asked), asked);
    }
}
