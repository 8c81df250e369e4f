/* SPDX-License-Identifier: BSD-2-Clause
 * Betweenness centrality by Brandes: GAP's bc. Per source a search forward, which counts paths, and
 * a sweep back; the arrays of a source come and go with it. */
#include "parts.h"
#include "workloads/levels.h"

static struct parts_graph g;
static struct levels levels;
static double *score, *paths, *depends;
static uint32_t deepest;

static void prepare(struct wl *w)
{
    parts_graph(&g, w, 3 * sizeof(double) + 3 * sizeof(uint32_t));
    levels = (struct levels){.n = g.n, .start = g.start, .end = g.end};
    levels.distance = wl_new(g.n, sizeof(uint32_t));
    levels.frontier[0] = wl_new(g.n, sizeof(uint32_t));
    levels.frontier[1] = wl_new(g.n, sizeof(uint32_t));
    score = wl_new(g.n, sizeof(*score));
    for (size_t v = 0; v < g.n; v++)
        score[v] = 0;
    wl_result(w, score, g.n, WL_F64);
}

static void forward(uint32_t v, uint32_t d)
{
    double sum = d == 0;

    for (uint64_t e = g.start[v]; d > 0 && e < g.start[v + 1]; e++)
        sum += levels.distance[g.end[e]] == d - 1 ? paths[g.end[e]] : 0;
    paths[v] = sum;
}

static void back(uint32_t v, uint32_t d)
{
    double sum = 0;

    for (uint64_t e = g.start[v]; e < g.start[v + 1]; e++) {
        uint32_t to = g.end[e];

        if (levels.distance[to] == d + 1)
            sum += paths[v] / paths[to] * (1 + depends[to]);
    }
    depends[v] = sum;
    score[v] += d > 0 ? sum : 0;
}

static void sweep(struct wl *w, unsigned id, uint32_t d, void (*visit)(uint32_t, uint32_t))
{
    for (uint32_t v = id; v < g.n; v += w->threads) {
        if (levels.distance[v] == d)
            visit(v, d);
    }
    wl_barrier(w);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++) {
        levels_search(&levels, w, id, (uint32_t)wl_below(wl_hash(w->seed, round), g.n / 16));
        wl_barrier(w);
        if (id == 0) {
            paths = parts_more(NULL, g.n * sizeof(*paths));
            depends = parts_more(NULL, g.n * sizeof(*depends));
            deepest = 0;
            for (size_t v = 0; v < g.n; v++) {
                if (levels.distance[v] != LEVELS_FAR && levels.distance[v] > deepest)
                    deepest = levels.distance[v];
            }
        }
        wl_barrier(w);
        for (uint32_t d = 0; d <= deepest; d++)
            sweep(w, id, d, forward);
        for (uint32_t d = deepest + 1; d-- > 0;)
            sweep(w, id, d, back);
        if (id == 0) {
            free(paths);
            free(depends);
        }
    }
    parts_note(w, score, g.n, id);
}

static bool verify(struct wl *w)
{
    (void)w;
    return parts_noted(score, g.n);
}

const struct workload workload = {
    .name = "bc",
    .about = "Betweenness centrality; a round is a source.",
    .size = 8,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
