/* SPDX-License-Identifier: BSD-2-Clause
 * glibc-simple: so many blocks of one size are made and freed, in the order in which they were made
 * and in the reverse; for a few sizes and numbers. */
#include "common.h"

#define MOST 1600

const char bench_name[] = "glibc-simple";
const uint64_t bench_default_ops = 12000000;

static void one_batch(struct worker *w, void **block, int n, size_t size, int step)
{
    for (int i = 0; i < n; i++)
        block[i] = block_new(w, size, (uint64_t)i + 1);
    for (int i = step > 0 ? 0 : n - 1; i >= 0 && i < n; i += step)
        block_free(w, block[i], size);
    w->done += (uint64_t)n;
}

static void work(struct worker *w)
{
    static const int numbers[] = {25, 100, 400, MOST};
    static const size_t sizes[] = {16, 64, 256, 1024};
    void **block = malloc(MOST * sizeof(void *));
    if (!block)
        bench_fail("malloc failed", NULL, 0);
    for (uint64_t turn = 0; w->done < w->args->ops; turn++)
        for (int k = 0; k < MOST / numbers[turn / 2 % 4]; k++)
            one_batch(w, block, numbers[turn / 2 % 4], sizes[turn / 8 % 4], turn % 2 ? 1 : -1);
    free(block);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
