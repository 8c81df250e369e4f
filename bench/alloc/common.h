/* SPDX-License-Identifier: BSD-2-Clause
 * What the six allocation benchmarks share: arguments (threads, operations per
 * thread, seed), a random generator, stamped blocks and the result line.
 *
 * A stamped block carries a tag in its first word and, from 16 bytes on, the tag
 * mixed with its size in its last word. The sum of all tags given out must equal
 * the sum of all tags found at free: a block handed out twice, lost or cut short
 * ends the program with status 1, so a fast but wrong allocator wins nothing. The
 * sum depends on the arguments only, so it is equal under every allocator. */
#ifndef BENCH_ALLOC_COMMON_H
#define BENCH_ALLOC_COMMON_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_MAX_THREADS 64

struct bench_args {
    unsigned threads;
    uint64_t ops; /* per thread */
    uint64_t seed;
};

/* One stream of work. On its own cache lines: neighbours are other threads'. */
struct worker {
    const struct bench_args *args;
    unsigned index;
    uint64_t rng;
    uint64_t done; /* operations: one allocation and its free */
    uint64_t tags_out, tags_back;
    void *shared;
} __attribute__((aligned(128)));

/* Written by each benchmark: its name, operations at `ops` 0, and its work. */
extern const char bench_name[];
extern const uint64_t bench_default_ops;
void bench_work(const struct bench_args *args, struct worker *workers);

/* Run fn for every worker, each in a thread of its own; a single worker runs in
 * the calling thread, as single-threaded programs do. */
void bench_spread(struct worker *workers, unsigned n, void (*fn)(struct worker *));
void bench_fail(const char *what, const void *block, size_t size) __attribute__((noreturn, cold));

static inline uint64_t bench_mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9fb21c651e98df25u;
    return x ^ (x >> 28);
}

/* A Weyl sequence through a mixer: one multiplication a number. */
static inline uint64_t bench_random(struct worker *w)
{
    w->rng += 0xa0761d6478bd642fu;
    return bench_mix(w->rng);
}

/* Uniform in [0, n) without a division; n below 2^32. */
static inline uint64_t bench_below(uint64_t random, uint64_t n)
{
    return ((random >> 32) * n) >> 32;
}

static inline void block_stamp(struct worker *w, void *block, size_t size, uint64_t tag)
{
    uint64_t tail = tag ^ size;

    memcpy(block, &tag, sizeof(tag));
    if (size >= 2 * sizeof(tag))
        memcpy((char *)block + size - sizeof(tail), &tail, sizeof(tail));
    w->tags_out += tag;
}

/* size: at least 8. */
static inline void *block_new(struct worker *w, size_t size, uint64_t tag)
{
    void *block = malloc(size);

    if (!block)
        bench_fail("malloc failed", NULL, size);
    block_stamp(w, block, size, tag);
    return block;
}

static inline void block_check(struct worker *w, const void *block, size_t size)
{
    uint64_t tag, tail;

    memcpy(&tag, block, sizeof(tag));
    if (size >= 2 * sizeof(tag)) {
        memcpy(&tail, (const char *)block + size - sizeof(tail), sizeof(tail));
        if (tail != (tag ^ size))
            bench_fail("block was overwritten", block, size);
    }
    w->tags_back += tag;
}

static inline void block_free(struct worker *w, void *block, size_t size)
{
    block_check(w, block, size);
    free(block);
}

#endif
