/* SPDX-License-Identifier: BSD-2-Clause
 * Graph building: rows of neighbours are made from a list of edges, then searched.
 *
 * Bandwidth-sensitive: what programs of graph analysis do that generate or load their graph
 * themselves (the GAP suite). The list of edges is the largest block, is touched first and is
 * given back before the long part begins; degrees become row starts by a prefix sum, and only
 * then the neighbours are allocated, which all the rest reads at random. So whoever gives DRAM
 * to what comes first holds it for what dies first.
 *
 * Two parts of the vertices are not connected, and a few vertices with nothing. The order of a
 * row depends on the threads, components and distances do not. They are verified edge by edge:
 * along an edge labels agree and distances differ by at most one, every vertex that is reached
 * has a neighbour one nearer, and those with the source's label are reached. */
#include <stdlib.h>

#include "levels.h"

#define DEGREE 16 /* on average, both directions */

struct edge {
    uint32_t a, b;
};

static uint32_t n, *label;
static uint64_t edges, *start, part_sum[WL_MAX_THREADS];
static uint32_t *neighbour;
static struct edge *list;
static struct levels l;
static unsigned changed;

/* Vertices whose number ends in 7 know only each other. Others are the likelier the lower. */
static struct edge edge(const struct wl *w, uint64_t e)
{
    uint64_t random = wl_hash(w->seed, e);
    double u = wl_unit(random << 20);
    uint32_t a = (uint32_t)wl_below(random, n), b = (uint32_t)(u * u * (double)n) / 8 * 8;

    b |= (a & 7) == 7 ? 7 : (uint32_t)(random % 7);
    return (struct edge){a, b < n ? b : a};
}

static void *block(size_t count, size_t size)
{
    void *p = malloc(count * size);

    if (!p)
        wl_fail("out of memory");
    return p;
}

static void prepare(struct wl *w)
{
    /* List and neighbours are there at once, starts too; the searches come after the list. */
    size_t most = w->bytes / (sizeof(*start) + 2 * sizeof(uint32_t) +
                              DEGREE / 2 * sizeof(struct edge) + DEGREE * sizeof(uint32_t));

    if (most > UINT32_MAX / 2)
        wl_fail("too many vertices");
    n = (uint32_t)most;
    edges = (uint64_t)n * DEGREE / 2;
    l.distance = wl_new(n, sizeof(*l.distance));
    label = wl_new(n, sizeof(*label));
    wl_result(w, l.distance, n, WL_U32);
}

static void count_degrees(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (size_t v = lo; v < hi; v++)
        start[v] = 0;
    wl_part(w, edges, id, &lo, &hi);
    for (size_t e = lo; e < hi; e++)
        list[e] = edge(w, e);
    wl_barrier(w);
    for (size_t e = lo; e < hi; e++) {
        __atomic_fetch_add(&start[list[e].a], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&start[list[e].b], 1, __ATOMIC_RELAXED);
    }
    wl_barrier(w);
}

/* Degrees become the ends of the rows, each thread over its part. */
static void prefix_sum(struct wl *w, unsigned id)
{
    size_t lo, hi;
    uint64_t sum = 0;

    wl_part(w, n, id, &lo, &hi);
    for (size_t v = lo; v < hi; v++)
        sum += start[v];
    part_sum[id] = sum;
    wl_barrier(w);
    sum = 0;
    for (unsigned i = 0; i < id; i++)
        sum += part_sum[i];
    for (size_t v = lo; v < hi; v++) {
        sum += start[v];
        start[v] = sum;
    }
    wl_barrier(w);
}

static void build(struct wl *w, unsigned id)
{
    size_t lo, hi;

    if (id == 0) {
        list = block(edges, sizeof(*list));
        start = block((size_t)n + 1, sizeof(*start));
    }
    wl_barrier(w);
    count_degrees(w, id);
    prefix_sum(w, id);
    if (id == 0) {
        start[n] = 2 * edges;
        neighbour = block(2 * edges, sizeof(*neighbour));
    }
    wl_barrier(w);
    /* Each end moves down to where its row begins. */
    wl_part(w, edges, id, &lo, &hi);
    for (size_t e = lo; e < hi; e++) {
        struct edge d = list[e];

        neighbour[__atomic_sub_fetch(&start[d.a], 1, __ATOMIC_RELAXED)] = d.b;
        neighbour[__atomic_sub_fetch(&start[d.b], 1, __ATOMIC_RELAXED)] = d.a;
    }
    wl_barrier(w);
    if (id == 0) {
        free(list);
        l.frontier[0] = block(n, sizeof(uint32_t));
        l.frontier[1] = block(n, sizeof(uint32_t));
        l.n = n;
        l.start = start;
        l.end = neighbour;
    }
    wl_barrier(w);
}

/* True if this made the label smaller. */
static bool lower(uint32_t v, uint32_t to)
{
    uint32_t now = __atomic_load_n(&label[v], __ATOMIC_RELAXED);

    while (to < now) {
        if (__atomic_compare_exchange_n(&label[v], &now, to, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

/* Everyone takes the smallest number around, until nothing changes: it is the component's. */
static void components(struct wl *w, unsigned id)
{
    size_t lo, hi;
    bool more = true;

    wl_part(w, n, id, &lo, &hi);
    for (size_t v = lo; v < hi; v++)
        label[v] = (uint32_t)v;
    while (more) {
        bool mine = false;

        if (id == 0)
            __atomic_store_n(&changed, 0, __ATOMIC_RELAXED);
        wl_barrier(w);
        for (size_t v = lo; v < hi; v++) {
            uint32_t least = __atomic_load_n(&label[v], __ATOMIC_RELAXED);

            for (uint64_t e = start[v]; e < start[v + 1]; e++) {
                uint32_t there = __atomic_load_n(&label[neighbour[e]], __ATOMIC_RELAXED);

                least = there < least ? there : least;
            }
            mine |= lower((uint32_t)v, least);
        }
        if (mine)
            __atomic_store_n(&changed, 1, __ATOMIC_RELAXED);
        wl_barrier(w);
        more = __atomic_load_n(&changed, __ATOMIC_RELAXED);
        wl_barrier(w);
    }
}

static uint32_t source(const struct wl *w, unsigned round)
{
    return (uint32_t)(wl_hash(w->seed + 1, round) % n);
}

static void work(struct wl *w, unsigned id)
{
    build(w, id);
    components(w, id);
    for (unsigned round = 0; round < w->rounds; round++)
        levels_search(&l, w, id, source(w, round));
}

/* From the edges as they were made: the rows themselves are on trial, too. */
static bool verify(struct wl *w)
{
    uint32_t *nearer = l.frontier[0], *distance = l.distance, last = source(w, w->rounds - 1);
    bool right = distance[last] == 0;

    for (uint32_t v = 0; v < n; v++)
        nearer[v] = v == last || distance[v] == LEVELS_FAR;
    for (uint64_t e = 0; e < edges; e++) {
        struct edge d = edge(w, e);
        uint32_t a = distance[d.a], b = distance[d.b];

        right &= label[d.a] == label[d.b] && (a > b ? a - b : b - a) <= 1;
        nearer[d.a] |= b + 1 == a && b != LEVELS_FAR;
        nearer[d.b] |= a + 1 == b && a != LEVELS_FAR;
    }
    for (uint32_t v = 0; v < n; v++)
        right &=
            nearer[v] && (distance[v] == LEVELS_FAR) == (label[v] != label[last]) && label[v] <= v;
    free(start);
    free(neighbour);
    free(l.frontier[0]);
    free(l.frontier[1]);
    return right;
}

const struct workload workload = {
    .name = "graphbuild",
    .about = "A graph is built from a list of edges, then searched; a round is a search.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
