/* SPDX-License-Identifier: BSD-2-Clause
 * alloc-test and glibc-thread (WIDE): random slots of each thread are emptied or filled; sizes by a
 * Pareto distribution, to 1 KiB, WIDE to 32 KiB. */
#include "common.h"

#if WIDE
const char bench_name[] = "glibc-thread";
#define SLOTS    1024
#define LARGEST  32768
#define SMALLEST 16
#else
const char bench_name[] = "alloc-test";
#define SLOTS    16384
#define LARGEST  1024
#define SMALLEST 8
#endif
const uint64_t bench_default_ops = 4000000;

/* Of each doubling half as many as of the one before. */
static size_t draw_size(uint64_t r)
{
    size_t n = (size_t)SMALLEST << __builtin_ctzll(r | 1ull << 40);
    n += (r >> 44) & (n - 1);
    return n > LARGEST ? LARGEST : n;
}

static void work(struct worker *w)
{
    struct slot {
        void *block;
        size_t size;
    } *slot = calloc(SLOTS, sizeof(*slot));
    if (!slot)
        bench_fail("calloc failed", NULL, 0);
    while (w->done < w->args->ops) {
        uint64_t r = bench_random(w);
        struct slot *s = &slot[bench_below(bench_mix(r), SLOTS)];
        if (s->block) {
            block_free(w, s->block, s->size);
            s->block = NULL;
        } else {
            s->size = draw_size(r);
            s->block = block_new(w, s->size, r | 1);
            w->done++;
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (slot[i].block)
            block_free(w, slot[i].block, slot[i].size);
    free(slot);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
