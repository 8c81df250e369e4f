/* SPDX-License-Identifier: BSD-2-Clause
 * Freed runs of 3 to 9 pages (blocks of 10 to 32 KiB) that wait for the next request of their
 * length and tier: taken and put without a lock. Like dirty runs they are charged and resident,
 * and they count against what the tier may keep (struct pages, `parked`). */
#ifndef HYBRID_HEAP_PARKED_H
#define HYBRID_HEAP_PARKED_H

#include "heap/internal.h"

/* A run of `len` granules, in memory, still marked as a large block; NO_GRANULE: there is none. */
uint32_t parked_take(enum hy_tier t, uint32_t len);
/* The block's run, whose map byte is 0 already, waits here; false: there is no place for it. */
bool parked_put(uint32_t head);

/* Under the tier's pages lock. A run of this length was freed: one more may wait for the caller
 * from now on, if the tier may keep it. */
void parked_widen(enum hy_tier t, uint32_t len);
/* No run waits any more: those that did become free, until parked_widen. */
void parked_drain(enum hy_tier t);
/* Runs that wait now, and their pages. */
void parked_count(enum hy_tier t, uint64_t *ret_runs, uint64_t *ret_pages);

#define PARKED_MAX (9 * HEAP_GRANULE)

static inline bool parked_is_for(uint32_t len)
{
    return len > SIZECLASS_MAX / HEAP_GRANULE && len <= PARKED_MAX / HEAP_GRANULE;
}

#endif
