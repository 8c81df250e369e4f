/* SPDX-License-Identifier: BSD-2-Clause
 * See levels.h. */
#include "levels.h"

#define BATCH 256 /* vertices taken to the frontier at once: fewer atomic additions */

static size_t flush(struct levels *l, unsigned to, const uint32_t *batch, size_t count)
{
    size_t at = __atomic_fetch_add(&l->filled[to], count, __ATOMIC_RELAXED);

    for (size_t i = 0; i < count; i++)
        l->frontier[to][at + i] = batch[i];
    return 0;
}

/* Only one thread wins a vertex; all would write the same distance. */
static bool claim(struct levels *l, uint32_t v, uint32_t level)
{
    uint32_t expected = LEVELS_FAR;

    return __atomic_load_n(&l->distance[v], __ATOMIC_RELAXED) == LEVELS_FAR &&
           __atomic_compare_exchange_n(&l->distance[v], &expected, level, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

static void expand(struct levels *l, struct wl *w, unsigned id, unsigned from, uint32_t level)
{
    uint32_t batch[BATCH];
    size_t lo, hi, count = 0;

    wl_part(w, l->filled[from], id, &lo, &hi);
    for (size_t i = lo; i < hi; i++) {
        uint32_t u = l->frontier[from][i];

        for (uint64_t e = l->start[u]; e < l->start[u + 1]; e++) {
            if (!claim(l, l->end[e], level))
                continue;
            batch[count++] = l->end[e];
            if (count == BATCH)
                count = flush(l, !from, batch, count);
        }
    }
    flush(l, !from, batch, count);
}

void levels_search(struct levels *l, struct wl *w, unsigned id, uint32_t vertex)
{
    size_t lo, hi;
    unsigned from = 0;

    wl_part(w, l->n, id, &lo, &hi);
    for (size_t v = lo; v < hi; v++)
        l->distance[v] = LEVELS_FAR;
    wl_barrier(w);
    if (id == 0) {
        l->distance[vertex] = 0;
        l->frontier[0][0] = vertex;
        l->filled[0] = 1;
        l->filled[1] = 0;
    }
    wl_barrier(w);
    for (uint32_t level = 1; l->filled[from] > 0; level++) {
        expand(l, w, id, from, level);
        wl_barrier(w);
        from = !from;
        /* The old frontier is read no more; nobody adds to it before the next barrier. */
        if (id == 0)
            l->filled[!from] = 0;
        wl_barrier(w);
    }
}
