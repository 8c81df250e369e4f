/* SPDX-License-Identifier: BSD-2-Clause
 * Sample sort: a round makes keys, scatters them over buckets in memory of its own, sorts each
 * there and writes it back. So its phases turn to other pages, and a buffer comes and goes. */
#include "parts.h"

#define BUCKETS 128
#define SAMPLES (8 * BUCKETS)

static size_t n, (*count)[BUCKETS], first[BUCKETS + 1];
static uint64_t *key, *buffer, splitter[BUCKETS];

static void prepare(struct wl *w)
{
    n = w->bytes / (2 * sizeof(*key));
    key = wl_new(n, sizeof(*key));
    count = wl_new(w->threads, sizeof(*count));
    wl_result(w, key, n, WL_U64);
}

static unsigned bucket_of(uint64_t k)
{
    unsigned b = 0;

    for (unsigned step = BUCKETS / 2; step; step /= 2)
        b += k >= splitter[b + step] ? step : 0;
    return b;
}

static void choose(void)
{
    uint64_t sample[SAMPLES];

    for (size_t i = 0; i < SAMPLES; i++)
        sample[i] = key[i * n / SAMPLES];
    parts_sort(sample, SAMPLES);
    for (size_t i = 0; i < BUCKETS; i++)
        splitter[i] = sample[i * SAMPLES / BUCKETS];
    buffer = parts_more(NULL, n * sizeof(*buffer));
}

static void scatter(struct wl *w, unsigned id, size_t lo, size_t hi)
{
    size_t place[BUCKETS], at = 0;

    for (unsigned b = 0; b < BUCKETS; b++)
        count[id][b] = 0;
    for (size_t i = lo; i < hi; i++)
        count[id][bucket_of(key[i])]++;
    wl_barrier(w);
    for (unsigned b = 0; b < BUCKETS; b++) {
        if (id == 0)
            first[b] = at;
        for (unsigned t = 0; t < w->threads; at += count[t++][b])
            place[b] = t == id ? at : place[b];
    }
    if (id == 0)
        first[BUCKETS] = n;
    for (size_t i = lo; i < hi; i++)
        buffer[place[bucket_of(key[i])]++] = key[i];
    wl_barrier(w);
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, n, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        for (size_t i = lo; i < hi; i++)
            key[i] = parts_key(w, i);
        wl_barrier(w);
        if (id == 0)
            choose();
        wl_barrier(w);
        scatter(w, id, lo, hi);
        for (unsigned b = id; b < BUCKETS; b += w->threads) {
            parts_sort(&buffer[first[b]], first[b + 1] - first[b]);
            for (size_t i = first[b]; i < first[b + 1]; i++)
                key[i] = buffer[i];
        }
        wl_barrier(w);
        if (id == 0)
            free(buffer);
    }
}

static bool verify(struct wl *w)
{
    return parts_sorted(w, key, n);
}

const struct workload workload = {
    .name = "samplesort",
    .about = "Sample sort; a round makes keys and sorts them.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
