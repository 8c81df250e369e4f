/* SPDX-License-Identifier: BSD-2-Clause
 * A block of a page or more in a span would be handed out again by the cache of a thread, which
 * looks at nothing but its map byte: so that byte becomes one that takes the slow road. Smaller
 * ones share their pages with others: what a program does to them it has done to those. */
#include "heap/altered.h"

#include <string.h>

#include "heap/free_runs.h"

bool hy_altered;

static uint32_t head_of(uint32_t i)
{
    return i - (hy_hg.from_head[i] & (ALTERED - 1));
}

/* A long run at eight pages a look. Nobody else alters pages of a block that is being freed. */
static bool altered_in(uint32_t i, uint32_t len)
{
    const uint8_t *at = hy_hg.from_head + i, *end = at + len;
    uint64_t eight, seen = 0;
    for (; end - at >= (ptrdiff_t)sizeof(eight); at += sizeof(eight)) {
        memcpy(&eight, at, sizeof(eight));
        seen |= eight;
    }
    for (; at < end; at++)
        seen |= *at;
    return seen & (ALTERED * UINT64_C(0x0101010101010101));
}

bool altered_run(uint32_t i)
{
    return altered_in(i, hy_hg.g[i].len);
}

static void forget(uint32_t i, uint32_t len)
{
    for (uint32_t k = i; k < i + len; k++)
        (void)__atomic_and_fetch(&hy_hg.from_head[k], (uint8_t)~ALTERED, __ATOMIC_RELAXED);
}

static bool renew(enum hy_tier t, uint32_t i, uint32_t len, bool in_use)
{
    if (!hy_hg.host.renew ||
        hy_hg.host.renew(t, granule_addr(i), (size_t)len << HEAP_GRANULE_SHIFT, in_use) != 0)
        return false;
    forget(i, len);
    return true;
}

bool altered_renew(enum hy_tier t, uint32_t i, uint32_t len)
{
    return renew(t, i, len, false);
}

/* The block of a span that all of page i lies in; NULL: there is none. */
static char *block_around(uint32_t i)
{
    uint32_t head = head_of(i);
    const struct granule *g = &hy_hg.g[head];
    size_t size = sizeclass_bytes[g->cls];
    if (size < HEAP_GRANULE)
        return NULL;
    char *first = (char *)granule_addr(head) + g->colour * LINE, *page = granule_addr(i);
    if (page < first)
        return NULL;
    char *block = first + (size_t)(page - first) / size * size;
    return page + HEAP_GRANULE <= block + size ? block : NULL;
}

static bool is_of_span(uint32_t i)
{
    unsigned v = __atomic_load_n(&hy_heap.map[i], __ATOMIC_RELAXED);
    return (v >= 1 && v <= HEAP_BINS) || v == HEAP_ALTERED;
}

static void note(enum hy_tier t, uint32_t from, uint32_t end)
{
    from = HY_MAX(from, hy_hg.first[t]);
    end = HY_MIN(end, tables_committed(t));
    for (uint32_t i = from; i < end; i++) {
        if (!(__atomic_load_n(&hy_hg.from_head[i], __ATOMIC_RELAXED) & ALTERED))
            (void)__atomic_or_fetch(&hy_hg.from_head[i], ALTERED, __ATOMIC_RELAXED);
        char *block = is_of_span(i) ? block_around(i) : NULL;
        if (block)
            __atomic_store_n(&hy_heap.map[granule_of(block)], HEAP_ALTERED, __ATOMIC_RELAXED);
    }
}

/* Pages that the owner of their block alters just now: nobody else frees it meanwhile, so no lock
 * is needed, and a handler of a signal may do this. */
void heap_note_altered(const void *base, size_t bytes)
{
    uintptr_t from = HY_MAX((uintptr_t)base, hy_heap.base);
    uintptr_t end = HY_MIN((uintptr_t)base + bytes, hy_heap.base + hy_heap.len);
    uint32_t last = (uint32_t)((end - hy_heap.base + HEAP_GRANULE - 1) >> HEAP_GRANULE_SHIFT);
    __atomic_store_n(&hy_altered, true, __ATOMIC_RELAXED);
    for (int t = 0; t < HY_TIERS; t++)
        note((enum hy_tier)t, granule_of((void *)from), last);
}

unsigned altered_bin(uint32_t i)
{
    return heap_bin(0, granule_tier(i), hy_hg.g[head_of(i)].cls); /* above a line, nobody's */
}

void altered_free(uint32_t i, void *block)
{
    unsigned bin = altered_bin(i);
    enum hy_tier t = granule_tier(i);
    uintptr_t end = (uintptr_t)block + sizeclass_bytes[hy_hg.g[head_of(i)].cls];
    uint32_t from = granule_of((void *)hy_align_up((uintptr_t)block, HEAP_GRANULE));
    bool ok = true;

    hy_lock_take(&hy_pages[t].lock);
    for (uint32_t k = from; ok && (uintptr_t)granule_addr(k + 1) <= end; k++)
        ok = !altered_in(k, 1) || renew(t, k, 1, true);
    hy_lock_release(&hy_pages[t].lock);
    if (!ok) /* it is not used again */
        return;
    __atomic_store_n(&hy_heap.map[i], (uint8_t)bin, __ATOMIC_RELAXED);
    cache_overflow(bin, block);
}
