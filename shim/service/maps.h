/* SPDX-License-Identifier: BSD-2-Clause
 * The program's own large private anonymous mappings that were given a tier:
 * which ranges, and how much of them is charged to it. A sorted table; its
 * users make system calls anyway, so a lock does no harm. */
#ifndef HYBRID_SERVICE_MAPS_H
#define HYBRID_SERVICE_MAPS_H

#include "base/types.h"

#define MAPS_MAX 65536u /* ranges; what does not fit is placed but not counted */

/* Called under the lock with what a tier has less (or more) of now. */
typedef void (*maps_account_fn)(enum hy_tier t, int64_t delta_bytes);
void maps_init(maps_account_fn account);
/* A new range of the tier, `charged` bytes of it already charged. */
void maps_add(void *base, size_t len, enum hy_tier t, uint64_t charged);
/* [base, base+len) is about to be unmapped or replaced. */
void maps_remove(void *base, size_t len);
/* Tier of the range that holds p; false when it is none of ours. */
bool maps_find(const void *p, enum hy_tier *ret);
bool maps_any(void);
/* Calls fn, under the lock, once for each range that is worth watching: at least a 16th of it is
 * charged. A range that fills later is told then. */
void maps_tell_new(void (*fn)(void *base, size_t len, enum hy_tier t));
void maps_totals(enum hy_tier t, unsigned *ret_ranges, uint64_t *ret_bytes, uint64_t *ret_charged);
/* Charge by what is in memory: looks at up to max_pages pages, goes on next time. */
void maps_measure(size_t max_pages);
/* In a child forked without maps_prefork: no range is known any more. */
void maps_abandon(void);
void maps_prefork(void);
void maps_postfork(void);

#endif
