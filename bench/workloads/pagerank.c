/* SPDX-License-Identifier: BSD-2-Clause
 * PageRank by pulling: each vertex sums what its neighbours give.
 *
 * Bandwidth-sensitive: edges stream by, and for each of them one word is gathered at
 * random from a vector that does not fit in the cache. The gathered vector earns DRAM
 * first, per byte by far; ranks are only streamed.
 *
 * A row is summed in its own order, so threads do not matter. The ranks must add up to
 * one, and the last round is computed again from the ranks before it. */
#include "graph.h"

#define DAMPING 0.85

static struct graph g;
static double *rank[2], *gift;

static void prepare(struct wl *w)
{
    graph_make(&g, w, 3 * sizeof(double));
    rank[0] = wl_new(g.n, sizeof(double));
    rank[1] = wl_new(g.n, sizeof(double));
    gift = wl_new(g.n, sizeof(double));
    for (uint32_t v = 0; v < g.n; v++)
        rank[0][v] = rank[1][v] = 1 / (double)g.n;
    wl_result(w, rank[w->rounds & 1], g.n, WL_F64);
}

static double give(const double *from, uint32_t v)
{
    return from[v] / (double)(g.start[v + 1] - g.start[v]);
}

static double pull(uint32_t v)
{
    double sum = 0;

    for (uint64_t e = g.start[v]; e < g.start[v + 1]; e++)
        sum += gift[g.end[e]];
    return (1 - DAMPING) / (double)g.n + DAMPING * sum;
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, g.n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t v = lo; v < hi; v++)
            gift[v] = give(rank[round & 1], (uint32_t)v);
        wl_barrier(w);
        for (size_t v = lo; v < hi; v++)
            rank[!(round & 1)][v] = pull((uint32_t)v);
        wl_barrier(w);
    }
}

static bool verify(struct wl *w)
{
    const double *now = w->result, *before = rank[!(w->rounds & 1)];
    double sum = 0;

    for (uint32_t v = 0; v < g.n; v++)
        gift[v] = give(before, v);
    for (uint32_t v = 0; v < g.n; v++) {
        if (!(now[v] == pull(v)))
            return false;
        sum += now[v];
    }
    return wl_abs(sum - 1) < 1e-9;
}

const struct workload workload = {
    .name = "pagerank",
    .about = "PageRank of a skewed random graph by pulling.",
    .size = 16,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
