/* SPDX-License-Identifier: BSD-2-Clause
 * big: blocks of 64 KiB to 4 MiB, every page written, a window of them alive. The
 * cost is page faults for whoever gives memory back to the kernel between blocks. */
#include "common.h"

#define WINDOW 16
#define PAGE   4096

const char bench_name[] = "big";
const uint64_t bench_default_ops = 4000;

struct slot {
    char *block;
    size_t size;
};

/* Evenly spread over the six octaves from 64 KiB on. */
static size_t draw_size(uint64_t r)
{
    size_t octave = (size_t)65536 << (r % 6);

    return octave + bench_below(bench_mix(r), octave);
}

static void release(struct worker *w, struct slot *s)
{
    uint64_t tag;

    if (!s->block)
        return;
    memcpy(&tag, s->block, sizeof(tag));
    for (size_t at = PAGE; at + 2 * sizeof(tag) <= s->size; at += PAGE) {
        uint64_t word;

        memcpy(&word, s->block + at, sizeof(word));
        if (word != tag + at)
            bench_fail("page was overwritten", s->block + at, s->size);
    }
    block_free(w, s->block, s->size);
}

static void work(struct worker *w)
{
    struct slot slot[WINDOW] = {{NULL, 0}};

    for (uint64_t i = 0; i < w->args->ops; i++) {
        uint64_t r = bench_random(w), tag = bench_random(w);
        struct slot *s = &slot[r % WINDOW];

        release(w, s);
        s->size = draw_size(r >> 8);
        s->block = block_new(w, s->size, tag);
        for (size_t at = PAGE; at + 2 * sizeof(tag) <= s->size; at += PAGE) {
            uint64_t word = tag + at;

            memcpy(s->block + at, &word, sizeof(word));
        }
        w->done++;
    }
    for (unsigned i = 0; i < WINDOW; i++)
        release(w, &slot[i]);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
