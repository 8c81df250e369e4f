/* SPDX-License-Identifier: BSD-2-Clause
 * What malloc and free need on their way through a thread's cache: no lock, no call. Everything
 * else of the heaps is in heap.h. */
#ifndef HYBRID_HEAP_HOT_H
#define HYBRID_HEAP_HOT_H

#include "base/types.h"
#include "heap/rules/sizeclass.h"

#define HEAP_GRANULE_SHIFT 12 /* HY_PAGE */
#define HEAP_GRANULE       ((size_t)1 << HEAP_GRANULE_SHIFT)
/* Blocks of one cache line are for one thread alone, so that two do not write to it by turns: spans
 * of blocks smaller than a line are owned by the threads of one number in so many. */
#define HEAP_OWNERS 8u
/* First the bins of whole lines and of owner 0, then those of the other owners. */
#define HEAP_PLAIN_BINS (HY_TIERS * SIZECLASS_COUNT)
#define HEAP_BINS       (HEAP_PLAIN_BINS + (HEAP_OWNERS - 1) * HY_TIERS * SIZECLASS_IN_LINE)

struct heap_range {
    uintptr_t base;
    size_t len; /* 0: no heap yet, every pointer is foreign */
    /* One byte a granule: 0 none, 1..HEAP_BINS bin of a span, HEAP_LARGE head; HEAP_ALTERED: here
     * begins a block of a span that is no ordinary memory (altered.h). */
    uint8_t *map;
};
#define HEAP_ALTERED (HEAP_BINS + 1)
#define HEAP_LARGE   (HEAP_BINS + 2)
_Static_assert(HEAP_LARGE <= UINT8_MAX, "a map byte is a bin or says that there is none");

/* A stack of free blocks; all NULL: no room yet. */
struct cache_bin {
    void **top, **bottom, **end;
};

/* Indexed by a map byte; entries that are no bin have neither room nor blocks, so that
 * every pointer but that of a cached block takes the slow road. */
struct thread_cache {
    /* Bin from which a small size, by its step, and a class is served first, by the tier in favour:
     * as heap_hot_offset tells it. Others write it (favour.c). First, so that its place in the
     * table is all that malloc computes. */
    uint16_t hot_step[SIZECLASS_STEPS], hot_bin[SIZECLASS_COUNT];
    struct cache_bin bin[HEAP_LARGE + 1];
    int64_t sample; /* bytes until the next allocation is looked at */
    int32_t room;   /* bytes of blocks by which its stacks may still grow */
    uint32_t holds; /* bytes of blocks that its stacks have places for */
    enum { CACHE_NONE, CACHE_LIVE, CACHE_DEAD } state;
    uint32_t number;             /* of those that were ever made */
    uint16_t looked_at;          /* bin */
    uint8_t seen[HEAP_BINS + 1]; /* blocks in it when it was looked at, the low byte */
    struct thread_cache *next_free, *next_made;
};

extern HY_HIDDEN struct heap_range hy_heap;
extern __thread struct thread_cache *hy_cache __attribute__((tls_model("initial-exec")));

static inline bool heap_owns(const void *p)
{
    return (uintptr_t)p - hy_heap.base < hy_heap.len;
}

static inline bool heap_overlaps(const void *p, size_t len)
{
    uintptr_t at = (uintptr_t)p, base = hy_heap.base;
    return at < base ? base - at < len : at - base < hy_heap.len;
}

static inline unsigned heap_bin(unsigned owner, enum hy_tier t, unsigned cls)
{
    if (owner == 0 || cls >= SIZECLASS_IN_LINE)
        return (unsigned)t * SIZECLASS_COUNT + cls + 1;
    return HEAP_PLAIN_BINS + ((owner - 1) * HY_TIERS + (unsigned)t) * SIZECLASS_IN_LINE + cls + 1;
}

/* Where a thread's blocks of a class are. */
static inline unsigned heap_own_bin(const struct thread_cache *tc, enum hy_tier t, unsigned cls)
{
    return heap_bin(tc->number % HEAP_OWNERS, t, cls);
}

static inline unsigned heap_bin_class(unsigned bin)
{
    return bin <= HEAP_PLAIN_BINS ? (bin - 1) % SIZECLASS_COUNT
                                  : (bin - 1 - HEAP_PLAIN_BINS) % SIZECLASS_IN_LINE;
}

static inline enum hy_tier heap_bin_tier(unsigned bin)
{
    unsigned part = bin <= HEAP_PLAIN_BINS ? (bin - 1) / SIZECLASS_COUNT
                                           : (bin - 1 - HEAP_PLAIN_BINS) / SIZECLASS_IN_LINE;
    return part % HY_TIERS ? HY_PM : HY_DRAM;
}

enum hy_tier heap_tier_of(const void *p); /* p must be ours */

/* The words of a cache, the bins' one after the other. An index into them can be part of an
 * instruction's address; a compiler that sees two uses of one rather computes the address first. */
enum { BIN_TOP, BIN_BOTTOM, BIN_END, BIN_WORDS };
#define BIN_FIRST (offsetof(struct thread_cache, bin) / sizeof(void **))
_Static_assert(sizeof(struct cache_bin) == BIN_WORDS * sizeof(void **), "three words a bin");
#define HEAP_HIDE_USES(v) __asm__("" : "+r"(v))

static inline size_t heap_hot_offset(size_t bin)
{
    return BIN_FIRST + bin * BIN_WORDS;
}

static inline void ***heap_words(struct thread_cache *tc)
{
    return (void ***)(void *)tc;
}

static inline bool heap_is_empty_at(struct thread_cache *tc, size_t offset)
{
    void ***word = heap_words(tc);
    return word[offset + BIN_TOP] == word[offset + BIN_BOTTOM];
}

/* From the bin at an offset, which is not empty. */
static inline void *heap_pop_at(struct thread_cache *tc, size_t offset)
{
    void ***word = heap_words(tc), **top = word[offset + BIN_TOP];
    HEAP_HIDE_USES(offset);
    HEAP_HIDE_USES(word); /* the word is read again: one instruction does all that follows */
    word[offset + BIN_TOP]--;
    return top[-1];
}

/* NULL: there is none. */
static inline void *heap_pop(struct thread_cache *tc, size_t bin)
{
    size_t offset = heap_hot_offset(bin);
    return heap_is_empty_at(tc, offset) ? NULL : heap_pop_at(tc, offset);
}

#define HEAP_LOOKED_AT 2 /* blocks that are looked at for one that is freed twice */

/* The hot path of free for a pointer of ours; false: take heap_free_slow. */
static inline bool heap_push(struct thread_cache *tc, void *p)
{
    size_t v = hy_heap.map[((uintptr_t)p - hy_heap.base) >> HEAP_GRANULE_SHIFT];
    size_t offset = v * BIN_WORDS;
    void ***word = heap_words(tc);
    HEAP_HIDE_USES(offset);
    void **top = word[BIN_FIRST + offset + BIN_TOP];
    HEAP_HIDE_USES(offset);
    if (HY_UNLIKELY(top == word[BIN_FIRST + offset + BIN_END] || top[-1] == p || top[-2] == p))
        return false; /* full, or freed just now */
    HEAP_HIDE_USES(offset);
    *top = p;
    word[BIN_FIRST + offset + BIN_TOP] = top + 1;
    return true;
}

#endif
