/* SPDX-License-Identifier: BSD-2-Clause
 * cache-scratch: each thread is given a block of 8 bytes, frees it, and writes again and again to
 * blocks of that size that it gets itself. If they lie in a cache line with another thread's, both
 * wait for each other at every write. */
#include "common.h"

#define WRITES 2000

const char bench_name[] = "cache-scratch";
const uint64_t bench_default_ops = 60000;

static void work(struct worker *w)
{
    free(w->shared);
    for (; w->done < w->args->ops; w->done++) {
        volatile char *p = malloc(8);
        if (!p)
            bench_fail("malloc failed", NULL, 8);
        for (int i = 0; i < WRITES; i++)
            p[i % 8] = (char)i;
        free((void *)p);
    }
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    for (unsigned i = 0; i < args->threads; i++)
        workers[i].shared = malloc(8);
    bench_spread(workers, args->threads, work);
}
