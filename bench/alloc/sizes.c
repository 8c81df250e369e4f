/* SPDX-License-Identifier: BSD-2-Clause
 * sizes: blocks of 8 bytes to 32 KiB, mostly small, with random lifetimes. Each
 * operation replaces the block of a random slot; now and then the block grows or
 * shrinks by realloc, or is asked for zeroed. */
#include "common.h"

#define SLOTS 2048

const char bench_name[] = "sizes";
const uint64_t bench_default_ops = 4000000;

struct slot {
    void *block;
    size_t size;
};

/* Of 64 blocks: 44 of 8..135 bytes, 14 up to 1 KiB, 5 up to 8 KiB, 1 up to 32 KiB. */
static size_t draw_size(uint64_t r)
{
    unsigned kind = r & 63;
    uint64_t part = r >> 6;

    if (kind < 44)
        return 8 + (part & 127);
    if (kind < 58)
        return 128 + part % 896;
    if (kind < 63)
        return 1024 + part % 7168;
    return 8192 + part % 24577;
}

static void renew(struct worker *w, struct slot *s)
{
    uint64_t r = bench_random(w);
    size_t size = draw_size(r >> 8);

    if (s->block && (r & 63) == 0) {
        void *moved;

        block_check(w, s->block, s->size);
        moved = realloc(s->block, size);
        if (!moved)
            bench_fail("realloc failed", s->block, size);
        s->block = moved;
        block_stamp(w, moved, size, r | 1);
    } else {
        if (s->block)
            block_free(w, s->block, s->size);
        if ((r & 63) == 1) {
            s->block = calloc(1, size);
            if (!s->block)
                bench_fail("calloc failed", NULL, size);
            if (((const char *)s->block)[size / 2] != 0)
                bench_fail("calloc gave a block that is not zero", s->block, size);
            block_stamp(w, s->block, size, r | 1);
        } else {
            s->block = block_new(w, size, r | 1);
        }
    }
    s->size = size;
    w->done++;
}

static void work(struct worker *w)
{
    struct slot *slot = calloc(SLOTS, sizeof(*slot));

    if (!slot)
        bench_fail("no memory for the slots", NULL, 0);
    for (uint64_t i = 0; i < w->args->ops; i++)
        renew(w, &slot[bench_below(bench_random(w), SLOTS)]);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slot[i].block)
            block_free(w, slot[i].block, slot[i].size);
    }
    free(slot);
}

void bench_work(const struct bench_args *args, struct worker *workers)
{
    bench_spread(workers, args->threads, work);
}
