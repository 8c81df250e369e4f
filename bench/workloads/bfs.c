/* SPDX-License-Identifier: BSD-2-Clause
 * Breadth-first search, level by level from a shared frontier (Graph500).
 *
 * Bandwidth-sensitive in the paper's picture (Graph500 is at the far end of bandwidth),
 * by random reads: rows of neighbours and the distances of their ends, a line fetched for
 * a word used, many at once because neighbours do not depend on each other. Little is
 * written. Objects: edges, row starts, distances, two frontiers.
 *
 * The order within a frontier depends on the threads, distances do not. Exact check:
 * along an edge distances differ by at most one, and every vertex but the source has a
 * neighbour one nearer. */
#include "graph.h"
#include "levels.h"

static struct graph g;
static struct levels l;

static uint32_t source_of(const struct wl *w, unsigned round)
{
    return (uint32_t)(wl_hash(w->seed + 1, round) % g.n);
}

static void prepare(struct wl *w)
{
    graph_make(&g, w, 3 * sizeof(uint32_t));
    l = (struct levels){.n = g.n, .start = g.start, .end = g.end};
    l.distance = wl_new(g.n, sizeof(*l.distance));
    l.frontier[0] = wl_new(g.n, sizeof(uint32_t));
    l.frontier[1] = wl_new(g.n, sizeof(uint32_t));
    wl_result(w, l.distance, g.n, WL_U32);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        levels_search(&l, w, id, source_of(w, round));
}

static bool verify(struct wl *w)
{
    const uint32_t *distance = l.distance;

    const uint32_t source = source_of(w, w->rounds - 1);
    if (distance[source] != 0)
        return false;
    for (uint32_t v = 0; v < g.n; v++) {
        bool nearer = v == source;

        for (uint64_t e = g.start[v]; e < g.start[v + 1]; e++) {
            uint32_t d = distance[g.end[e]];

            if (d > distance[v] ? d - distance[v] > 1 : distance[v] - d > 1)
                return false;
            nearer |= d + 1 == distance[v];
        }
        if (!nearer || distance[v] == LEVELS_FAR)
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "bfs",
    .about = "Breadth-first searches in a skewed random graph; a round is a search.",
    .size = 16,
    .rounds = 2,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
