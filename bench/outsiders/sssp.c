/* SPDX-License-Identifier: BSD-2-Clause
 * Shortest paths by delta stepping: GAP's sssp. Each thread has a list of its own for each span of
 * distances, which grows by realloc; what comes next is gathered from all of them. */
#include "parts.h"

#define SPAN 32
#define BINS 64
#define FAR  ((uint64_t)1 << 40)

struct bin {
    uint32_t *v;
    size_t n, room;
};

static struct parts_graph g;
static uint64_t *far, next_vertex, next_bin, filled;
static uint32_t *frontier;
static size_t limit;

static uint64_t length(uint32_t a, uint64_t e)
{
    return 1 + wl_below(wl_hash(a, e), 255);
}

static void prepare(struct wl *w)
{
    parts_graph(&g, w, sizeof(*far) + 2 * PARTS_DEGREE * sizeof(*frontier));
    far = wl_new(g.n, sizeof(*far));
    limit = (size_t)g.n * PARTS_DEGREE;
    frontier = wl_new(limit, sizeof(*frontier)); /* what is not reached is never touched */
    wl_result(w, far, g.n, WL_U64);
}

static void push(struct bin *b, uint32_t v)
{
    if (b->n == b->room) {
        b->room = b->room ? 2 * b->room : 64;
        b->v = parts_more(b->v, b->room * sizeof(*b->v));
    }
    b->v[b->n++] = v;
}

static void relax(struct bin *bin, uint32_t v)
{
    uint64_t base = __atomic_load_n(&far[v], __ATOMIC_RELAXED);

    for (uint64_t e = g.start[v]; e < g.start[v + 1]; e++) {
        uint64_t d = base + length(v, e), old = __atomic_load_n(&far[g.end[e]], __ATOMIC_RELAXED);

        while (d < old && !__atomic_compare_exchange_n(&far[g.end[e]], &old, d, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        if (d < old)
            push(&bin[d / SPAN < BINS ? d / SPAN : BINS - 1], g.end[e]);
    }
}

/* All that lies below the end of bin `now`. */
static void step(struct wl *w, struct bin *bin, size_t now)
{
    uint64_t at, low = BINS;

    while ((at = __atomic_fetch_add(&next_vertex, 64, __ATOMIC_RELAXED)) < filled) {
        for (uint64_t i = at; i < filled && i < at + 64; i++) {
            if (far[frontier[i]] / SPAN >= now)
                relax(bin, frontier[i]);
        }
    }
    for (size_t b = BINS; b-- > now;)
        low = bin[b].n ? b : low;
    for (uint64_t old = next_bin;
         low < old && !__atomic_compare_exchange_n(&next_bin, &old, low, true, __ATOMIC_RELAXED,
                                                   __ATOMIC_RELAXED);)
        ;
    wl_barrier(w);
}

static void search(struct wl *w, unsigned id, struct bin *bin, uint32_t from)
{
    size_t lo, hi, now = 0;

    wl_part(w, g.n, id, &lo, &hi);
    for (size_t v = lo; v < hi; v++)
        far[v] = v == from ? 0 : FAR;
    if (id == 0) {
        frontier[0] = from;
        filled = 1;
    }
    while (now < BINS) {
        if (id == 0) {
            next_vertex = 0;
            next_bin = BINS;
        }
        wl_barrier(w);
        step(w, bin, now);
        now = next_bin;
        if (id == 0)
            filled = 0;
        wl_barrier(w);
        if (now < BINS && bin[now].n) {
            size_t at = __atomic_fetch_add(&filled, bin[now].n, __ATOMIC_RELAXED);

            if (at + bin[now].n > limit)
                wl_fail("the frontier is too long");
            for (size_t i = 0; i < bin[now].n; i++)
                frontier[at + i] = bin[now].v[i];
            bin[now].n = 0;
        }
        wl_barrier(w);
    }
}

static void work(struct wl *w, unsigned id)
{
    struct bin bin[BINS] = {0};

    for (unsigned round = 0; round < w->rounds; round++)
        search(w, id, bin, (uint32_t)wl_below(wl_hash(w->seed, round), g.n / 16));
    for (size_t b = 0; b < BINS; b++)
        free(bin[b].v);
    parts_note(w, far, g.n, id);
}

static bool verify(struct wl *w)
{
    size_t reached = 0;

    (void)w;
    for (size_t v = 0; v < g.n; v++)
        reached += far[v] < FAR;
    return reached > 0 && parts_noted(far, g.n);
}

const struct workload workload = {
    .name = "sssp",
    .about = "Shortest paths by delta stepping; a round is a source.",
    .size = 8,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
