/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap/span_pages.h"

#include "heap/altered.h"
#include "heap/free_runs.h"

_Static_assert(SPAN_GRANULES <= 16, "a bit of struct granule's `gone` for each page");

static bool all_set(const uint64_t *bits, unsigned from, unsigned to)
{
    for (unsigned w = from / 64; w <= to / 64; w++) {
        uint64_t want = UINT64_MAX;
        if (w == from / 64)
            want &= UINT64_MAX << from % 64;
        if (w == to / 64)
            want &= UINT64_MAX >> (63 - to % 64);
        if ((bits[w] & want) != want)
            return false;
    }
    return true;
}

/* Does page k have blocks, and are all of them free? */
static bool is_unused(uint32_t head, unsigned k)
{
    const struct granule *g = &hy_hg.g[head];
    size_t size = sizeclass_bytes[g->cls], first = g->colour * LINE;
    size_t begin = k * HEAP_GRANULE, end = begin + HEAP_GRANULE;
    size_t from = begin > first ? (begin - first) / size : 0;
    if (end <= first || from >= g->n_blocks)
        return false;
    size_t to = HY_MIN((end - 1 - first) / size, g->n_blocks - 1u);
    return all_set(span_bits(head), (unsigned)from, (unsigned)to);
}

static bool may_lie_near(uint32_t i)
{
    size_t bytes = HEAP_GRANULE;
    return !hy_hg.host.lies_far || !hy_hg.host.lies_far(granule_addr(i), &bytes);
}

/* The pages from k on that can go back with one call. */
static unsigned unused_from(uint32_t head, unsigned k, unsigned most)
{
    const struct granule *g = &hy_hg.g[head];
    unsigned n = 0;
    while (n < most && k + n < g->len && !(g->gone >> (k + n) & 1) &&
           !(hy_hg.from_head[head + k + n] & ALTERED) && is_unused(head, k + n) &&
           may_lie_near(head + k + n))
        n++;
    return n;
}

unsigned span_pages_give(uint32_t head, unsigned most)
{
    enum hy_tier t = granule_tier(head);
    struct granule *g = &hy_hg.g[head];
    struct pages *p = &hy_pages[t];
    unsigned given = 0;

    if (g->n_free * (size_t)sizeclass_bytes[g->cls] < HEAP_GRANULE)
        return 0;
    hy_lock_take(&p->lock);
    for (unsigned k = 0, n; k < g->len && given < most && !p->tight; k += n + 1) {
        n = unused_from(head, k, most - given);
        size_t bytes = (size_t)n << HEAP_GRANULE_SHIFT;
        if (n == 0 || hy_hg.host.purge(t, granule_addr(head + k), bytes) != 0)
            continue;
        g->gone = (uint16_t)(g->gone | ((1u << n) - 1) << k);
        p->purged_granules += n;
        free_discharge(t, bytes);
        given += n;
    }
    hy_lock_release(&p->lock);
    return given;
}

static void come_back(uint32_t head, uint32_t pages)
{
    enum hy_tier t = granule_tier(head);
    size_t bytes = (size_t)__builtin_popcount(pages) << HEAP_GRANULE_SHIFT;
    hy_hg.g[head].gone = (uint16_t)(hy_hg.g[head].gone & ~pages);
    if (bytes == 0)
        return;
    hy_lock_take(&hy_pages[t].lock);
    if (!hy_hg.host.charge(t, bytes, false))
        (void)hy_hg.host.charge(t, bytes, true);
    hy_lock_release(&hy_pages[t].lock);
}

void span_pages_retake(uint32_t head, void *const *blocks, unsigned n)
{
    const struct granule *g = &hy_hg.g[head];
    size_t size = sizeclass_bytes[g->cls];
    uint32_t pages = 0;
    for (unsigned i = 0; i < n; i++) {
        size_t at = (uintptr_t)blocks[i] - (uintptr_t)granule_addr(head);
        unsigned from = (unsigned)(at >> HEAP_GRANULE_SHIFT);
        unsigned to = (unsigned)((at + size - 1) >> HEAP_GRANULE_SHIFT);
        pages |= (2u << to) - (1u << from);
    }
    come_back(head, pages & g->gone);
}

void span_pages_retake_all(uint32_t head)
{
    come_back(head, hy_hg.g[head].gone);
}
