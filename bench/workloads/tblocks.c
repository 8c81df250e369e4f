/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP tasks on blocks of one large array: each goes over its block SWEEPS times, and the next
 * round's task on it depends on it. Built with TASKLOOP (tloop), a taskloop does the same: what it
 * is going to use nobody tells. It counts forwards and backwards by turns, by numbers with a sign
 * and without, which are two calls of libgomp.
 *
 * How often a task uses its data decides whether moving them to DRAM first can pay: SWEEPS is set
 * by the build (tblocks1, tblocks16, tblocks64). Each element gets the same number of updates, so
 * its value is known. */
#include "common.h"

#ifndef SWEEPS
#define SWEEPS 16
#endif
#define BLOCK 32768 /* elements: 256 KiB */

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
#ifdef TASKLOOP
        if (round % 2 == 0) {
#pragma omp taskloop grainsize(1)
            for (unsigned long long b = 0; b < blocks; b++)
                sweep(data + b * BLOCK);
        } else {
#pragma omp taskloop grainsize(1)
            for (long b = (long)blocks - 1; b >= 0; b--)
                sweep(data + b * BLOCK);
        }
#else
        for (size_t b = 0; b < blocks; b++) {
            double *p = data + b * BLOCK;
#pragma omp task depend(inout : p[0]) firstprivate(p)
            sweep(p);
        }
#endif
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
#ifdef TASKLOOP
    .name = "tloop",
    .about = "A taskloop over blocks of an array.",
#else
    .name = "tblocks",
    .about = "OpenMP tasks that sweep over blocks of an array.",
#endif
    .size = 16,
    .rounds = 4,
    .prepare = prepare,
    .work = work,
    .verify = verify,
};
