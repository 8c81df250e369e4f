/* SPDX-License-Identifier: BSD-2-Clause
 * Breadth-first search by all threads, level by level from a shared frontier. */
#ifndef BENCH_WORKLOADS_LEVELS_H
#define BENCH_WORKLOADS_LEVELS_H

#include "common.h"

#define LEVELS_FAR UINT32_MAX /* the distance of what is not reached */

struct levels {
    uint32_t n;
    const uint64_t *start; /* n + 1; neighbours of v are end[start[v]] to end[start[v + 1] - 1] */
    const uint32_t *end;
    uint32_t *distance, *frontier[2]; /* n each, the caller's */
    size_t filled[2];
};

/* Called by all threads: distances from vertex `from`. The order within a frontier depends on the
 * threads, distances do not. */
void levels_search(struct levels *l, struct wl *w, unsigned id, uint32_t from);

#endif
