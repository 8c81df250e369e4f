/* SPDX-License-Identifier: BSD-2-Clause
 * What several of the outsiders need: a sort, a graph, memory that may run out, and a check of the
 * result that costs one pass. */
#ifndef BENCH_OUTSIDERS_PARTS_H
#define BENCH_OUTSIDERS_PARTS_H

#include <stdlib.h>

#include "workloads/common.h"

/* In place, rising. Not qsort: what the libc does, the emulated machine does not see. */
void parts_sort(uint64_t *v, size_t n);

/* The keys that the sorts sort: no two are alike. Whether all of them are there, rising. */
static inline uint64_t parts_key(const struct wl *w, size_t i)
{
    return wl_hash(w->seed + w->rounds, i) << 24 | i;
}
bool parts_sorted(const struct wl *w, const uint64_t *key, size_t n);

/* As malloc and realloc; ends the program when memory is short. */
void *parts_more(void *old, size_t bytes);

/* Undirected R-MAT graph of 2^k vertices, as rows of neighbours: hubs have low numbers, as the
 * generators of Graph500 and GAP leave them before they shuffle. */
#define PARTS_DEGREE 16
struct parts_graph {
    uint32_t n;
    uint64_t *start; /* n + 1 */
    uint32_t *end;
};
/* As many vertices as fit beside `extra` bytes each. */
void parts_graph(struct parts_graph *g, const struct wl *w, size_t extra);

/* Every thread, at the end of its work: the words of its part go into a sum, which says in
 * verify() whether they are still what was worked out. A barrier must stand before. */
void parts_note(const struct wl *w, const void *words, size_t n, unsigned id);
bool parts_noted(const void *words, size_t n);

#endif
