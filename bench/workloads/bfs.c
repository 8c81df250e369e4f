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

#define FAR   UINT32_MAX
#define BATCH 256 /* vertices taken to the frontier at once: fewer atomic additions */

static struct graph g;
static uint32_t *distance, *frontier[2];
static size_t filled[2];
static uint32_t source;

static uint32_t source_of(const struct wl *w, unsigned round)
{
    return (uint32_t)(wl_hash(w->seed + 1, round) % g.n);
}

static void prepare(struct wl *w)
{
    graph_make(&g, w, 3 * sizeof(uint32_t));
    distance = wl_new(g.n, sizeof(*distance));
    frontier[0] = wl_new(g.n, sizeof(uint32_t));
    frontier[1] = wl_new(g.n, sizeof(uint32_t));
    wl_result(w, distance, g.n, WL_U32);
}

static size_t flush(unsigned to, const uint32_t *batch, size_t count)
{
    size_t at = __atomic_fetch_add(&filled[to], count, __ATOMIC_RELAXED);

    for (size_t i = 0; i < count; i++)
        frontier[to][at + i] = batch[i];
    return 0;
}

/* Only one thread wins a vertex; all would write the same distance. */
static bool claim(uint32_t v, uint32_t level)
{
    uint32_t expected = FAR;

    return __atomic_load_n(&distance[v], __ATOMIC_RELAXED) == FAR &&
           __atomic_compare_exchange_n(&distance[v], &expected, level, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

static void expand(struct wl *w, unsigned id, unsigned from, uint32_t level)
{
    uint32_t batch[BATCH];
    size_t lo, hi, count = 0;

    wl_part(w, filled[from], id, &lo, &hi);
    for (size_t i = lo; i < hi; i++) {
        uint32_t u = frontier[from][i];

        for (uint64_t e = g.start[u]; e < g.start[u + 1]; e++) {
            if (!claim(g.end[e], level))
                continue;
            batch[count++] = g.end[e];
            if (count == BATCH)
                count = flush(!from, batch, count);
        }
    }
    flush(!from, batch, count);
}

static void search(struct wl *w, unsigned id, uint32_t from_vertex)
{
    size_t lo, hi;
    unsigned from = 0;

    wl_part(w, g.n, id, &lo, &hi);
    for (size_t v = lo; v < hi; v++)
        distance[v] = FAR;
    wl_barrier(w);
    if (id == 0) {
        source = from_vertex;
        distance[source] = 0;
        frontier[0][0] = source;
        filled[0] = 1;
        filled[1] = 0;
    }
    wl_barrier(w);
    for (uint32_t level = 1; filled[from] > 0; level++) {
        expand(w, id, from, level);
        wl_barrier(w);
        from = !from;
        /* The old frontier is read no more; nobody adds to it before the next barrier. */
        if (id == 0)
            filled[!from] = 0;
        wl_barrier(w);
    }
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        search(w, id, source_of(w, round));
}

static bool verify(struct wl *w)
{
    (void)w;
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
        if (!nearer || distance[v] == FAR)
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
