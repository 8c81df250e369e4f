/* SPDX-License-Identifier: BSD-2-Clause
 * Hash joins: each round builds a table over another part of one relation, probes it with a part
 * of the other, and frees it. The tables differ in size. */
#include "parts.h"

#define EMPTY UINT64_MAX

static size_t n, slots;
static uint64_t *build, *probe, *table, *result; /* a slot is key and payload */

static void prepare(struct wl *w)
{
    n = w->bytes / (4 * sizeof(uint64_t));
    build = wl_new(n, sizeof(*build));
    probe = wl_new(n, sizeof(*probe));
    result = wl_new(WL_LANES, sizeof(*result));
    for (size_t i = 0; i < n; i++) {
        build[i] = wl_hash(w->seed, i) >> 1;
        double u = wl_unit(wl_hash(w->seed + 1, i)); /* some keys are asked for often */
        probe[i] = build[(size_t)(u * u * u * (double)n)];
    }
    for (unsigned i = 0; i < WL_LANES; i++)
        result[i] = 0;
    wl_result(w, result, WL_LANES, WL_U64);
}

static size_t slot_of(uint64_t key)
{
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (slots - 1);
}

static void insert(uint64_t key)
{
    for (size_t s = slot_of(key);; s = (s + 1) & (slots - 1)) {
        uint64_t old = EMPTY;

        if (__atomic_compare_exchange_n(&table[2 * s], &old, key, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            table[2 * s + 1] = key * 3;
            return;
        }
    }
}

static uint64_t find(uint64_t key)
{
    for (size_t s = slot_of(key); table[2 * s] != EMPTY; s = (s + 1) & (slots - 1)) {
        if (table[2 * s] == key)
            return table[2 * s + 1];
    }
    return 1;
}

static void join(struct wl *w, unsigned id, unsigned round)
{
    size_t part = n >> (1 + round % 3), from = n / 4 * (round % 2), lo, hi;

    if (id == 0) {
        for (slots = 64; slots < part + part / 2;)
            slots *= 2;
        table = parts_more(NULL, 2 * slots * sizeof(*table));
    }
    wl_barrier(w);
    wl_part(w, 2 * slots, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++)
        table[i] = EMPTY;
    wl_barrier(w);
    wl_part(w, part, id, &lo, &hi);
    for (size_t i = lo; i < hi; i++)
        insert(build[from + i]);
    wl_barrier(w);
    for (unsigned lane = id; lane < WL_LANES; lane += w->threads) {
        for (size_t i = n * lane / WL_LANES; i < n * (lane + 1) / WL_LANES; i++)
            result[lane] += find(probe[i]);
    }
    wl_barrier(w);
    if (id == 0)
        free(table);
}

static void work(struct wl *w, unsigned id)
{
    for (unsigned round = 0; round < w->rounds; round++)
        join(w, id, round);
    wl_barrier(w);
    parts_note(w, result, WL_LANES, id);
}

static bool verify(struct wl *w)
{
    (void)w;
    return parts_noted(result, WL_LANES);
}

const struct workload workload = {
    .name = "hashjoin",
    .about = "Hash joins with tables of several sizes; a round is a join.",
    .size = 8,
    .rounds = 6,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
