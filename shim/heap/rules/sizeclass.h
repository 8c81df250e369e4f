/* SPDX-License-Identifier: BSD-2-Clause
 * Size classes of the heaps. Steps of 16 bytes up to 128, then eight classes to
 * each doubling, so that at most 1/9 of a block is lost. Every class is a multiple of 16; powers
 * of two are classes, which serves aligned requests. They end where a span of 64 KiB holds no more
 * blocks than there would be with whole pages: 7 of 9 KiB and 6 of 10 KiB, not 5 of 3 pages. Above
 * a power of two are sizes that programs do ask for: 8 KiB and a header. Larger blocks have pages
 * of their own, side by side: temporaries of one size find the pages that those of another have
 * left. */
#ifndef HYBRID_HEAP_RULES_SIZECLASS_H
#define HYBRID_HEAP_RULES_SIZECLASS_H

#include "base/types.h"

#define SIZECLASS_COUNT 58u
#define SIZECLASS_MAX   ((size_t)10240) /* largest size that has a class */

/* Classes whose blocks are smaller than a cache line, the first. */
#define SIZECLASS_IN_LINE 3u

/* Block size of each class, in bytes. */
extern HY_HIDDEN const uint16_t sizeclass_bytes[SIZECLASS_COUNT];
/* Class of sizes up to 1 KiB, by their step. */
#define SIZECLASS_SMALL ((size_t)1024)
#define SIZECLASS_STEPS 65u
extern HY_HIDDEN const uint8_t sizeclass_small[SIZECLASS_STEPS];

static inline unsigned sizeclass_step(size_t n)
{
    return (unsigned)((n + 15) >> 4);
}

/* Class of a request of n bytes, n <= SIZECLASS_MAX; 0 bytes are served as 1. */
static inline unsigned sizeclass_of(size_t n)
{
    if (HY_LIKELY(n <= SIZECLASS_SMALL))
        return sizeclass_small[sizeclass_step(n)];
    unsigned msb = 63u - (unsigned)__builtin_clzl(n - 1);
    return 8 + (msb - 7) * 8 + (unsigned)(((n - 1) >> (msb - 3)) & 7);
}

/* Smallest class for n bytes whose blocks all lie on multiples of align (a
 * power of two <= 4096); SIZECLASS_COUNT if there is none. */
unsigned sizeclass_aligned(size_t n, size_t align);
/* Blocks of this class that a thread keeps at most. */
unsigned sizeclass_cache_blocks(unsigned cls);

#endif
