/* SPDX-License-Identifier: BSD-2-Clause
 * Multilevel partitioning of graphs: each is coarsened by matching until little is left, cut in two
 * there, and the cut is refined on the way back: METIS. The arrays of a level come with room for as
 * many edges as the level before has, are cut down by realloc, and are freed in reverse order. */
#include "parts.h"

#define GRAPHS 16 /* whatever the number of threads */
#define DEGREE 6
#define LEVELS 32
#define COARSE 64
#define SWEEPS 2
#define NONE   UINT32_MAX

struct level {
    uint32_t n;
    uint32_t *start, *end, *weight; /* rows of neighbours */
    uint32_t *map;                  /* a vertex' own in the next level */
};

static size_t n;
static struct level graph[GRAPHS];
static uint32_t *side;         /* the result: of all vertices of all graphs */
static uint64_t first[GRAPHS]; /* the cut before it was refined */

/* A torus, and each vertex knows two far ones: reflections, so edges go both ways. */
static void make_graph(const struct wl *w, struct level *g, unsigned r)
{
    uint64_t all = g->n, wide = wl_root(all), at = 0;

    for (uint64_t v = 0; v < all; v++) {
        uint64_t to[DEGREE] = {(v + 1) % all, (v + all - 1) % all, (v + wide) % all,
                               (v + all - wide) % all};

        for (unsigned k = 4; k < DEGREE; k++)
            to[k] = (wl_below(wl_hash(w->seed + k, r), all) + all - v) % all;
        g->start[v] = (uint32_t)at;
        for (unsigned k = 0; k < DEGREE; k++, at++) {
            g->end[at] = (uint32_t)to[k];
            g->weight[at] = to[k] != v;
        }
    }
    g->start[all] = (uint32_t)at;
}

static void prepare(struct wl *w)
{
    n = w->bytes / GRAPHS / (DEGREE * 16 + 16);
    side = wl_new(GRAPHS * n, sizeof(*side));
    for (unsigned r = 0; r < GRAPHS; r++) {
        graph[r] = (struct level){.n = (uint32_t)n,
                                  .start = wl_new(n + 1, sizeof(*side)),
                                  .end = wl_new(n * DEGREE, sizeof(*side)),
                                  .weight = wl_new(n * DEGREE, sizeof(*side))};
        make_graph(w, &graph[r], r);
    }
    wl_result(w, side, GRAPHS * n, WL_U32);
}

static uint32_t *words(size_t count, uint32_t value)
{
    uint32_t *p = parts_more(NULL, (count + 1) * sizeof(*p));

    for (size_t i = 0; i < count; i++)
        p[i] = value;
    return p;
}

/* Each vertex with the free neighbour of the heaviest edge; the number of pairs. */
static uint32_t match(struct level *g, uint32_t *mate)
{
    uint32_t pairs = 0;

    for (uint32_t v = 0; v < g->n; v++) {
        uint32_t best = v, heaviest = 0;

        if (mate[v] != NONE)
            continue;
        for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++)
            if (g->end[e] != v && mate[g->end[e]] == NONE && g->weight[e] > heaviest) {
                best = g->end[e];
                heaviest = g->weight[e];
            }
        mate[v] = best;
        mate[best] = v;
        g->map[v] = g->map[best] = pairs++;
    }
    return pairs;
}

static void add_row(const struct level *g, uint32_t v, struct level *c, uint32_t own,
                    uint32_t *seen)
{
    for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++) {
        uint32_t to = g->map[g->end[e]], at = seen[to];

        if (to == own)
            continue;
        if (at == NONE || at < c->start[own]) {
            at = seen[to] = c->start[own + 1]++;
            c->end[at] = to;
            c->weight[at] = 0;
        }
        c->weight[at] += g->weight[e];
    }
}

static void coarsen(struct level *g, struct level *c)
{
    uint32_t *mate = words(g->n, NONE), *seen, edges = g->start[g->n];

    g->map = words(g->n, 0);
    c->n = match(g, mate);
    c->start = words(c->n + 1, 0);
    c->end = parts_more(NULL, (edges + 1) * sizeof(*c->end));
    c->weight = parts_more(NULL, (edges + 1) * sizeof(*c->weight));
    seen = words(c->n, NONE);
    for (uint32_t v = 0, own = 0; v < g->n; v++) {
        if (mate[v] < v)
            continue;
        c->start[own + 1] = c->start[own];
        add_row(g, v, c, own, seen);
        if (mate[v] != v)
            add_row(g, mate[v], c, own, seen);
        own++;
    }
    c->end = parts_more(c->end, (c->start[c->n] + 1) * sizeof(*c->end));
    c->weight = parts_more(c->weight, (c->start[c->n] + 1) * sizeof(*c->weight));
    free(seen);
    free(mate);
}

/* Whoever has more weight beyond the cut than on its own side changes sides. */
static void refine(const struct level *g, uint32_t *of)
{
    uint32_t *inner = words(g->n, 0), *outer = words(g->n, 0);

    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++)
            *(of[g->end[e]] == of[v] ? &inner[v] : &outer[v]) += g->weight[e];
    for (unsigned sweep = 0; sweep < SWEEPS; sweep++)
        for (uint32_t v = 0; v < g->n; v++) {
            uint32_t was = inner[v];

            if (outer[v] <= was)
                continue;
            of[v] ^= 1;
            inner[v] = outer[v];
            outer[v] = was;
            for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++) {
                uint32_t u = g->end[e], same = of[u] == of[v] ? g->weight[e] : -g->weight[e];

                if (u != v) {
                    inner[u] += same;
                    outer[u] -= same;
                }
            }
        }
    free(outer);
    free(inner);
}

static uint64_t cut_of(const struct level *g, const uint32_t *of)
{
    uint64_t cut = 0;

    for (uint32_t v = 0; v < g->n; v++)
        for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++)
            cut += of[g->end[e]] != of[v] ? g->weight[e] : 0;
    return cut;
}

static void partition(const struct wl *w, unsigned r, unsigned round)
{
    struct level l[LEVELS];
    unsigned last = 0;

    l[0] = graph[r];
    while (last + 1 < LEVELS && l[last].n > COARSE) {
        coarsen(&l[last], &l[last + 1]);
        last++;
    }
    uint32_t *of = last ? words(l[last].n, 0) : side + r * n;
    for (uint32_t v = 0; v < l[last].n; v++)
        of[v] = wl_hash(w->seed + round, v) & 1;
    first[r] = cut_of(&l[last], of);
    refine(&l[last], of);
    for (; last > 0; last--) {
        struct level *g = &l[last - 1];
        uint32_t *finer = last > 1 ? words(g->n, 0) : side + r * n;

        for (uint32_t v = 0; v < g->n; v++)
            finer[v] = of[g->map[v]];
        free(of);
        free(l[last].weight);
        free(l[last].end);
        free(l[last].start);
        free(g->map);
        refine(g, of = finer);
    }
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        for (unsigned r = id; r < GRAPHS; r += w->threads)
            partition(w, r, round);
    wl_barrier(w);
    parts_note(w, side, GRAPHS * n / 2, id);
}

/* To refine never makes a cut worse. */
static bool verify(struct wl *w)
{
    bool ok = parts_noted(side, GRAPHS * n / 2);

    (void)w;
    for (unsigned r = 0; r < GRAPHS; r++)
        ok = ok && cut_of(&graph[r], side + r * n) <= first[r];
    return ok;
}

const struct workload workload = {
    .name = "partition",
    .about = "Multilevel partitioning; a round cuts each graph in two.",
    .size = 10,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
