/* SPDX-License-Identifier: BSD-2-Clause
 * The graph of BFS and PageRank: undirected, a few vertices with very many neighbours, as
 * rows of neighbours (CSR). A ring through all vertices makes it connected. */
#ifndef BENCH_WORKLOADS_GRAPH_H
#define BENCH_WORKLOADS_GRAPH_H

#include "common.h"

#define GRAPH_DEGREE 8 /* on average */

struct graph {
    uint32_t n;
    uint64_t *start; /* n + 1; neighbours of v are end[start[v]] to end[start[v + 1] - 1] */
    uint32_t *end;
};

/* As many vertices as fit beside `extra` bytes a vertex of the caller's. */
void graph_make(struct graph *g, const struct wl *w, size_t extra);

#endif
