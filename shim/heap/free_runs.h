/* SPDX-License-Identifier: BSD-2-Clause
 * Free runs of a tier: what of them is kept in memory, and what goes back to the system. Between
 * pages.c and free_runs.c; all but pages_* (internal.h) is called under the tier's lock. */
#ifndef HYBRID_HEAP_FREE_RUNS_H
#define HYBRID_HEAP_FREE_RUNS_H

#include "heap/internal.h"
#include "heap/rules/keep.h"

struct pages {
    struct hy_lock lock;
    struct run_set clean, dirty;
    uint64_t near, holes; /* of the dirty runs, pages: see struct granule */
    uint64_t live_bytes, peak_bytes, taken_granules, spans, large, large_allocs, purged_granules;
    uint64_t parked;             /* pages that have a place in parked.c; written under the lock */
    struct keep keep, keep_near; /* of all dirty pages; of those that may lie on DRAM */
    uint64_t retaken;            /* of pages near or holes, ever */
    uint16_t tick;
    bool tight; /* address space has run out once: what is free gives it back */
} __attribute__((aligned(64)));

extern struct pages hy_pages[HY_TIERS];

/* Pages of free runs that are in memory, and charged. */
static inline uint64_t free_resident(const struct pages *p)
{
    return p->dirty.granules - p->holes;
}

static inline uint64_t live_pages(const struct pages *p)
{
    return p->live_bytes / HY_PAGE;
}

static inline void mark_run(uint32_t i, uint32_t len, enum run_state st)
{
    struct granule *first = &hy_hg.g[i], *last = first + len - 1;

    first->state = last->state = (uint8_t)st;
    first->len = last->len = len;
}
/* Memory without pages becomes free, joined with its neighbours. */
void free_add_clean(enum hy_tier t, uint32_t i, uint32_t len);
/* A run becomes free for which so much was charged: it is kept, or goes back, as the rules say. */
void free_add(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged);
/* The same, and it goes back at once; false: it cannot, and is not free. */
bool free_add_purged(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged);
/* The same of one that has been mapped afresh: nothing has to go back. */
void free_add_renewed(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged);
/* Take [i+skip, i+skip+len) out of the free run i. What was dirty is charged in full then. Returns
 * how many of its pages may be holes. */
uint32_t free_cut(enum hy_tier t, uint32_t i, uint32_t skip, uint32_t len);
/* At most so many granules of what is free stay dirty. */
void free_purge_down_to(enum hy_tier t, uint64_t granules);
/* So many pages are about to be touched for the first time. If the kernel has no DRAM for all of
 * them any more, what lies free here goes back now, and not only when somebody looks: they get it.
 */
void free_note_fresh(enum hy_tier t, uint32_t pages);
/* May so many pages more wait in parked.c? Only while DRAM is ample. */
bool free_may_park(enum hy_tier t, uint32_t len);
/* pages.c: as pages_free. */
void pages_free_locked(enum hy_tier t, uint32_t head);
void free_discharge(enum hy_tier t, uint64_t bytes);

#endif
