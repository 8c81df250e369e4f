/* SPDX-License-Identifier: BSD-2-Clause
 * pairs: the two shortest patterns, 64 bytes each: a block freed as soon as it is
 * made, and batches of 100. Half of the operations each. */
#include "common.h"

#define SIZE  64
#define BATCH 100

const char bench_name[] = "pairs";
const uint64_t bench_default_ops = 20000000;

static void work(struct worker *w)
{
    uint64_t half = w->args->ops / 2, tag = w->rng;
    void *batch[BATCH];

    for (uint64_t i = 0; i < half; i++)
        block_free(w, block_new(w, SIZE, ++tag), SIZE);
    for (uint64_t i = 0; i < half; i += BATCH) {
        for (unsigned k = 0; k < BATCH; k++)
            batch[k] = block_new(w, SIZE, ++tag);
        for (unsigned k = 0; k < BATCH; k++)
            block_free(w, batch[k], SIZE);
    }
    w->done = half + (half + BATCH - 1) / BATCH * BATCH;
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
