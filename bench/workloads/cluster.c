/* SPDX-License-Identifier: BSD-2-Clause
 * Clustering like streamcluster: candidate centres are tried one after the other and
 * opened when the points that would change save more than a centre costs.
 *
 * Bandwidth-sensitive, as streamcluster in the paper (Group 1), and nearly read only: a
 * trial reads every coordinate of every point once, three operations each, and writes one
 * distance a point. Objects: coordinates (large, read only), distances, costs, owners.
 *
 * Savings are summed by fixed blocks. Every point's cost must be its distance to its
 * owner, bit by bit, and for a sample no open centre may be nearer. */
#include "common.h"

#define DIMS   32
#define HEAPS  16  /* in the data */
#define BLOCK  256 /* points summed up together, whatever the threads */
#define SAMPLE 1024

static size_t n, nblocks;
static float (*point)[DIMS];
static double *cost, *part;
static float *trial;
static uint32_t *owner, *centre;
static size_t centres;
static double price; /* of a centre */

static float distance(size_t a, size_t b)
{
    float sum = 0;

    for (unsigned d = 0; d < DIMS; d++) {
        float t = point[a][d] - point[b][d];

        sum += t * t;
    }
    return sum;
}

static void prepare(struct wl *w)
{
    n = w->bytes / (sizeof(*point) + sizeof(*cost) + sizeof(*trial) + sizeof(*owner));
    if (n > UINT32_MAX)
        wl_fail("at most 600 GiB");
    nblocks = (n + BLOCK - 1) / BLOCK;
    point = wl_new(n, sizeof(*point));
    cost = wl_new(n, sizeof(*cost));
    trial = wl_new(n, sizeof(*trial));
    owner = wl_new(n, sizeof(*owner));
    part = wl_new(nblocks, sizeof(*part));
    centre = wl_new(w->rounds + 1, sizeof(*centre));
    for (size_t i = 0; i < n; i++) {
        uint64_t heap = wl_hash(w->seed, i) % HEAPS;

        for (unsigned d = 0; d < DIMS; d++)
            point[i][d] = (float)(wl_unit(wl_hash(w->seed + 1, heap * DIMS + d)) +
                                  0.2 * wl_unit(wl_hash(w->seed + 2, i * DIMS + d)));
    }
    /* The first centre owns all. */
    centre[0] = (uint32_t)(wl_hash(w->seed + 3, 0) % n);
    centres = 1;
    for (size_t i = 0; i < n; i++) {
        owner[i] = centre[0];
        cost[i] = distance(i, centre[0]);
        price += cost[i];
    }
    price /= 4 * HEAPS;
    wl_result(w, cost, n, WL_F64);
}

static void try_centre(size_t candidate, size_t block)
{
    size_t end = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
    double saved = 0;

    for (size_t i = block * BLOCK; i < end; i++) {
        trial[i] = distance(i, candidate);
        if (trial[i] < cost[i])
            saved += cost[i] - trial[i];
    }
    part[block] = saved;
}

static void open_centre(size_t candidate, size_t lo, size_t hi)
{
    for (size_t i = lo; i < hi; i++) {
        if (trial[i] < cost[i]) {
            cost[i] = trial[i];
            owner[i] = (uint32_t)candidate;
        }
    }
}

static void work(struct wl *w, unsigned id)
{
    size_t lo, hi;

    wl_part(w, nblocks, id, &lo, &hi);
    for (unsigned round = 0; round < w->rounds; round++) {
        size_t candidate = wl_hash(w->seed + 3, round + 1) % n;
        double saved = 0;

        for (size_t block = lo; block < hi; block++)
            try_centre(candidate, block);
        wl_barrier(w);
        for (size_t block = 0; block < nblocks; block++)
            saved += part[block];
        if (saved > price) {
            open_centre(candidate, lo * BLOCK, hi * BLOCK < n ? hi * BLOCK : n);
            if (id == 0)
                centre[centres++] = (uint32_t)candidate;
        }
        wl_barrier(w);
    }
}

static bool verify(struct wl *w)
{
    size_t stride = n / SAMPLE + 1;

    (void)w;
    for (size_t i = 0; i < n; i++) {
        if (!(cost[i] == distance(i, owner[i])))
            return false;
    }
    for (size_t i = 0; i < n; i += stride) {
        for (size_t c = 0; c < centres; c++) {
            if (distance(i, centre[c]) < cost[i])
                return false;
        }
    }
    return true;
}

const struct workload workload = {
    .name = "cluster",
    .about = "Opens centres for points in 32 dimensions; a round tries one candidate.",
    .size = 16,
    .rounds = 16,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
