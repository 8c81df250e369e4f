/* SPDX-License-Identifier: BSD-2-Clause
 * A taskloop over blocks of one large array, sixteen sweeps over each, as tblocks16 does with tasks
 * that depend on their block: what a taskloop is going to use nobody tells. Counted forwards and
 * backwards by turns, by numbers with a sign and without, which are two calls of libgomp. */
#include "common.h"

#define SWEEPS 16
#define BLOCK  32768 /* elements: 256 KiB */

static size_t blocks;
static double *data;

static void prepare(struct wl *w)
{
    blocks = w->bytes / (BLOCK * sizeof(double));
    if (blocks < 2)
        wl_fail("too small: two blocks of 256 KiB at least");
    data = wl_new(blocks * BLOCK, sizeof(double));
    for (size_t i = 0; i < blocks * BLOCK; i++)
        data[i] = (double)(wl_hash(w->seed, i) % 1000);
    wl_result(w, data, blocks * BLOCK, WL_F64);
}

static void sweep(double *p)
{
    for (int s = 0; s < SWEEPS; s++)
        for (size_t i = 0; i < BLOCK; i++)
            p[i] += 1;
}

static void work(struct wl *w, unsigned id)
{
    if (id != 0) /* OpenMP has threads of its own */
        return;
#pragma omp parallel num_threads(w->threads)
#pragma omp single
    for (unsigned round = 0; round < w->rounds; round++) {
        if (round % 2 == 0) {
#pragma omp taskloop grainsize(1)
            for (unsigned long long b = 0; b < blocks; b++)
                sweep(data + b * BLOCK);
        } else {
#pragma omp taskloop grainsize(1)
            for (long b = (long)blocks - 1; b >= 0; b--)
                sweep(data + b * BLOCK);
        }
    }
}

static bool verify(struct wl *w)
{
    const double *d = w->result;

    for (size_t i = 0; i < blocks * BLOCK; i++)
        if (d[i] != (double)(wl_hash(w->seed, i) % 1000 + (size_t)w->rounds * SWEEPS))
            return false;
    return true;
}

const struct workload workload = {
    .name = "tloop",
    .about = "A taskloop over blocks of an array.",
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
