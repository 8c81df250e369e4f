/* SPDX-License-Identifier: BSD-2-Clause
 * mstress: threads that begin and end in rounds; each makes blocks, most of one size and some of
 * many times that, keeps some for long, frees others soon and puts others where another thread
 * takes them. */
#include "common.h"

#define ROUND_OPS 10000
#define KEPT      1024
#define PASSED    1024

const char bench_name[] = "mstress";
const uint64_t bench_default_ops = 3000000;

static void *passed[PASSED];

/* The size is the block's first word, and so is known to whoever frees it. */
static void *get(struct worker *w)
{
    uint64_t r = bench_random(w);
    size_t n = 8 * (1 + ((r >> 16) & 7));
    if (r % 100 == 0)
        n *= 16;
    if (r % 1000 == 0)
        n *= 64;
    size_t *p = malloc(n);
    if (!p)
        bench_fail("malloc failed", NULL, n);
    for (size_t i = 0; i < n / sizeof(size_t); i++)
        p[i] = n + i;
    w->done++;
    return p;
}

static void put(size_t *p)
{
    if (!p)
        return;
    size_t n = p[0];
    for (size_t i = 0; i < n / sizeof(size_t); i++)
        if (p[i] != n + i)
            bench_fail("block was overwritten", p, n);
    free(p);
}

static void one_round(struct worker *w)
{
    void **kept = calloc(KEPT, sizeof(void *));
    if (!kept)
        bench_fail("calloc failed", NULL, 0);
    uint64_t until = w->done + ROUND_OPS;
    while (w->done < until) {
        void *p = get(w);
        uint64_t r = bench_random(w);
        if (r % 2) {
            void **place = &kept[bench_below(r, KEPT)];
            put(*place);
            *place = p;
        } else if (r % 8 == 0) {
            put(__atomic_exchange_n(&passed[bench_below(r, PASSED)], p, __ATOMIC_ACQ_REL));
        } else {
            put(p);
        }
    }
    for (size_t i = 0; i < KEPT; i++)
        put(kept[i]);
    free(kept);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    for (uint64_t done = 0; done < args->ops; done += ROUND_OPS)
        bench_spread(workers, args->threads, one_round);
    for (size_t i = 0; i < PASSED; i++)
        put(passed[i]);
}
