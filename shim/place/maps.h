/* SPDX-License-Identifier: BSD-2-Clause
 * The program's own large private anonymous mappings that were given a tier:
 * which ranges, and how much of them is charged to it. A sorted table; its
 * users make system calls anyway, so a lock does no harm. */
#ifndef HYBRID_PLACE_MAPS_H
#define HYBRID_PLACE_MAPS_H

#include "base/types.h"

#define MAPS_MAX 65536u /* ranges; what does not fit is placed but not counted */

/* What is told, under the lock. */
struct maps_host {
    /* What a tier has less (or more) of now. */
    void (*account)(enum hy_tier t, int64_t delta_bytes);
    /* A mapping of this call site, or a part of one, is charged `to` now; more than ever by
     * `more`. */
    void (*resized)(uint16_t site, uint64_t from, uint64_t to, uint64_t more);
    /* Nothing is left of what maps_add was told of. */
    void (*gone)(uint16_t site);
};
void maps_init(const struct maps_host *host);
/* A new range of the tier, `charged` bytes of it already charged. site 0: not known. */
void maps_add(void *base, size_t len, enum hy_tier t, uint16_t site, uint64_t charged);
/* [base, base+len) is about to be unmapped or replaced. */
void maps_remove(void *base, size_t len);
/* Tier and call site of the first range that has some of [p, p+len); false when none of it is ours.
 */
bool maps_find(const void *p, size_t len, enum hy_tier *ret_tier, uint16_t *ret_site);
bool maps_any(void);
/* Calls fn, under the lock, once for each range that is worth watching: at least a 16th of it is
 * charged. A range that fills later is told then. */
void maps_tell_new(void (*fn)(void *base, size_t len, enum hy_tier t));
void maps_totals(enum hy_tier t, unsigned *ret_ranges, uint64_t *ret_bytes, uint64_t *ret_charged);
/* Charge by what is in memory: looks at up to max_pages pages, goes on next time. */
void maps_measure(size_t max_pages);
void maps_prefork(void);
void maps_postfork(void);

#endif
