/* SPDX-License-Identifier: BSD-2-Clause
 * Random updates with OpenMP tasks: each updates words at random in one part of the table, eight
 * for each of its words; Tahoe's RandomAccess (DIGEST 003). An update is its own inverse, so the
 * table can be brought back to what it was. */
#include "common.h"

#define PART 32768 /* words: 256 KiB */
#define EACH 8

static size_t parts;
static uint64_t *table;

static void update(uint64_t *p, uint64_t seed)
{
    for (uint64_t i = 0; i < PART * EACH; i++) {
        uint64_t r = wl_next(&seed);
        p[wl_below(r, PART)] ^= r;
    }
}

static void prepare(struct wl *w)
{
    parts = w->bytes / (PART * sizeof(*table));
    if (parts < 2)
        wl_fail("too small: two parts of 256 KiB at least");
    table = wl_new(parts * PART, sizeof(*table));
    for (size_t i = 0; i < parts * PART; i++)
        table[i] = i;
    wl_result(w, table, parts * PART, WL_U64);
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    for (unsigned round = 0; round < w->rounds; round++)
        for (size_t b = 0; b < parts; b++) {
            uint64_t *p = table + b * PART, seed = wl_hash(w->seed + round, b);
#pragma omp task depend(inout : p[0]) firstprivate(p, seed)
            update(p, seed);
        }
}

static bool verify(struct wl *w)
{
    uint64_t *t = w->result;

    for (unsigned round = 0; round < w->rounds; round++)
        for (size_t b = 0; b < parts; b++)
            update(t + b * PART, wl_hash(w->seed + round, b));
    for (size_t i = 0; i < parts * PART; i++)
        if (t[i] != i)
            return false;
    return true;
}

const struct workload workload = {
    .name = "tgups",
    .about = "OpenMP tasks that update random words of parts of a table.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
