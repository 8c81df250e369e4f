/* SPDX-License-Identifier: BSD-2-Clause
 * PageRank by pulling, on an R-MAT graph whose hubs lie together: GAP's pr. Ranks are integers, so
 * that sums have no order. */
#include "parts.h"

static struct parts_graph g;
static uint64_t *rank, *gives;

static void prepare(struct wl *w)
{
    parts_graph(&g, w, sizeof(*rank) + sizeof(*gives));
    rank = wl_new(g.n, sizeof(*rank));
    gives = wl_new(g.n, sizeof(*gives));
    for (size_t v = 0; v < g.n; v++)
        rank[v] = 1u << 24;
    wl_result(w, rank, g.n, WL_U64);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, g.n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t v = lo; v < hi; v++)
            gives[v] = rank[v] / (g.start[v + 1] - g.start[v] + 1);
        wl_barrier(w);
        for (size_t v = id; v < g.n; v += w->threads) {
            uint64_t sum = gives[v];

            for (uint64_t e = g.start[v]; e < g.start[v + 1]; e++)
                sum += gives[g.end[e]];
            rank[v] = (15 << 24) / 100 + sum * 85 / 100;
        }
        wl_barrier(w);
    }
    parts_note(w, rank, g.n, id);
}

static bool verify(struct wl *w)
{
    uint64_t sum = 0;

    (void)w;
    for (size_t v = 0; v < g.n; v++) /* what is rounded away is little */
        sum += rank[v];
    return sum <= (uint64_t)g.n << 24 && sum >= ((uint64_t)g.n << 24) / 100 * 99 &&
           parts_noted(rank, g.n);
}

const struct workload workload = {
    .name = "pr",
    .about = "PageRank on an R-MAT graph; a round is an iteration.",
    .size = 8,
    .rounds = 20,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
