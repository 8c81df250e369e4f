/* SPDX-License-Identifier: BSD-2-Clause
 * Merge sort: runs are sorted in place, then merged in pairs, each merge through a copy of its left
 * half in a block of its own: temporaries that double from level to level. */
#include "parts.h"

#define RUNS 64 /* a power of two */

static size_t n;
static uint64_t *key;

static void prepare(struct wl *w)
{
    n = w->bytes * 2 / 3 / sizeof(*key);
    key = wl_new(n, sizeof(*key));
    wl_result(w, key, n, WL_U64);
}

static void merge(uint64_t *v, size_t half, size_t all)
{
    uint64_t *left = parts_more(NULL, half * sizeof(*left));
    size_t a = 0, b = half;

    for (size_t i = 0; i < half; i++)
        left[i] = v[i];
    for (size_t i = 0; a < half; i++)
        v[i] = b == all || left[a] < v[b] ? left[a++] : v[b++];
    free(left);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++)
            key[i] = parts_key(w, i);
        wl_barrier(w);
        for (size_t r = id; r < RUNS; r += w->threads)
            parts_sort(&key[n * r / RUNS], n * (r + 1) / RUNS - n * r / RUNS);
        wl_barrier(w);
        for (size_t runs = RUNS; runs > 1; runs /= 2) {
            for (size_t r = 2 * (size_t)id; r < runs; r += 2 * (size_t)w->threads) {
                size_t at = n * r / runs;

                merge(&key[at], n * (r + 1) / runs - at, n * (r + 2) / runs - at);
            }
            wl_barrier(w);
        }
    }
}

static bool verify(struct wl *w)
{
    return parts_sorted(w, key, n);
}

const struct workload workload = {
    .name = "mergesort",
    .about = "Merge sort; a round makes keys and sorts them.",
    .size = 12,
    .rounds = 3,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
