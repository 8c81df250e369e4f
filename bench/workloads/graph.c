/* SPDX-License-Identifier: BSD-2-Clause
 * A random graph with skewed degrees. */
#include "graph.h"

struct edge {
    uint32_t a, b;
};

/* Edge e: the first n are the ring, the others lead from anywhere to a vertex that is the
 * likelier the lower its rank; ranks are scattered over the numbers, or the hubs would
 * share pages. */
static struct edge edge(const struct wl *w, uint32_t n, uint64_t e)
{
    uint64_t random = wl_hash(w->seed, e);
    double u = wl_unit(random << 20);
    uint64_t rank = (uint64_t)(u * u * (double)n);

    if (e < n)
        return (struct edge){(uint32_t)e, (uint32_t)((e + 1) % n)};
    return (struct edge){(uint32_t)wl_below(random, n), (uint32_t)(rank * 0x9e3779b1u % n)};
}

void graph_make(struct graph *g, const struct wl *w, size_t extra)
{
    size_t n = w->bytes / (sizeof(*g->start) + GRAPH_DEGREE * sizeof(*g->end) + extra);
    uint64_t edges = (uint64_t)n * GRAPH_DEGREE / 2, sum = 0;

    if (n > UINT32_MAX / 2)
        wl_fail("too many vertices");
    g->n = (uint32_t)n;
    g->start = wl_new(n + 1, sizeof(*g->start));
    g->end = wl_new(2 * edges, sizeof(*g->end));
    for (size_t v = 0; v <= n; v++)
        g->start[v] = 0;
    for (uint64_t e = 0; e < edges; e++) {
        struct edge d = edge(w, g->n, e);

        g->start[d.a]++;
        g->start[d.b]++;
    }
    for (size_t v = 0; v <= n; v++) {
        sum += g->start[v];
        g->start[v] = sum;
    }
    /* From the back: each start moves down to where its row begins. */
    for (uint64_t e = edges; e-- > 0;) {
        struct edge d = edge(w, g->n, e);

        g->end[--g->start[d.a]] = d.b;
        g->end[--g->start[d.b]] = d.a;
    }
}
