/* SPDX-License-Identifier: BSD-2-Clause
 * Radix sort: least significant digit first, from one array to the other and back.
 *
 * Write-intensive and bandwidth-sensitive, as radix in the paper: each pass reads one
 * array in order and scatters it over 256 places of the other, so writes are half of the
 * traffic and, beyond the cache, dirty lines leave in no order.
 *
 * An element is a random key above its first position. The sort is stable, so the result
 * is one and the same for every number of threads: strictly rising, every key that of its
 * position, hence each element exactly once. */
#include "common.h"

#define DIGIT  8
#define BINS   (1u << DIGIT)
#define PASSES 4 /* 32 bits of key; even, so the last pass ends where the first began */

static size_t n;
static uint64_t *array[2];
static size_t (*count)[BINS]; /* by thread */

static uint64_t element(const struct wl *w, size_t i)
{
    return wl_hash(w->seed + w->rounds - 1, i) << 32 | (uint32_t)i;
}

static void prepare(struct wl *w)
{
    n = w->bytes / (2 * sizeof(uint64_t));
    if (n > UINT32_MAX)
        wl_fail("at most 64 GiB");
    array[0] = wl_new(n, sizeof(uint64_t));
    array[1] = wl_new(n, sizeof(uint64_t));
    count = wl_new(w->threads, sizeof(*count));
    wl_result(w, array[0], n, WL_U64);
}

static unsigned bin_of(uint64_t e, unsigned pass)
{
    return (unsigned)(e >> (32 + pass * DIGIT)) & (BINS - 1);
}

static void sort_pass(struct wl *w, unsigned id, unsigned pass, size_t lo, size_t hi)
{
    const uint64_t *from = array[pass & 1];
    uint64_t *to = array[!(pass & 1)];
    size_t place[BINS], at = 0;

    for (unsigned bin = 0; bin < BINS; bin++)
        count[id][bin] = 0;
    for (size_t i = lo; i < hi; i++)
        count[id][bin_of(from[i], pass)]++;
    wl_barrier(w);
    /* A bin holds the elements of thread 0, then 1, ...: the order of the input. */
    for (unsigned bin = 0; bin < BINS; bin++) {
        for (unsigned t = 0; t < w->threads; t++) {
            if (t == id)
                place[bin] = at;
            at += count[t][bin];
        }
    }
    for (size_t i = lo; i < hi; i++)
        to[place[bin_of(from[i], pass)]++] = from[i];
    wl_barrier(w);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++)
            array[0][i] = element(w, i);
        wl_barrier(w);
        for (unsigned pass = 0; pass < PASSES; pass++)
            sort_pass(w, id, pass, lo, hi);
    }
}

static bool verify(struct wl *w)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t e = array[0][i];

        if ((uint32_t)e >= n || e != element(w, (uint32_t)e) || (i > 0 && e <= array[0][i - 1]))
            return false;
    }
    return true;
}

const struct workload workload = {
    .name = "radix",
    .about = "Radix sort of 32-bit keys with their positions; a round fills and sorts.",
    .size = 16,
    .rounds = 1,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
