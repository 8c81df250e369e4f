/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses as the kernel writes them into a ring (perf_event_open(2)), each with
 * PERF_SAMPLE_ADDR and PERF_SAMPLE_DATA_SRC and nothing else. Pure: the ring is only looked at,
 * and nothing in it is trusted. */
#ifndef HYBRID_PAGES_RULES_SAMPLE_RING_H
#define HYBRID_PAGES_RULES_SAMPLE_RING_H

#include "base/types.h"

struct sample_ring {
    const uint8_t *data;
    uint64_t size;       /* bytes, a power of two */
    uint64_t head, tail; /* written up to, read up to: running totals */
};

/* Add up. */
struct sample_counts {
    uint64_t samples;
    uint64_t lost;      /* for want of room */
    uint64_t throttled; /* times that the kernel held the event back */
    uint64_t broken;    /* rest of a ring that made no sense, left out */
};

/* Calls fn for each sample; where to go on reading (the next tail). */
uint64_t sample_ring_read(const struct sample_ring *r,
                          void (*fn)(void *ctx, uint64_t address, uint64_t source), void *ctx,
                          struct sample_counts *counts);

enum sample_kind { SAMPLE_NONE, SAMPLE_READ, SAMPLE_STORE };

enum sample_filter {
    SAMPLE_ALL,           /* what is sampled are misses only */
    SAMPLE_FROM_MEMORY,   /* accesses that a memory answered, as far as the source tells */
    SAMPLE_MISSED_STORES, /* stores that missed all caches of which the source tells: L1 (Intel),
                           * L1 and L2 (AMD); no processor tells who answered a store */
};
/* What a sample tells of. Addresses of the kernel tell nothing. */
enum sample_kind sample_kind_of(uint64_t address, uint64_t source, enum sample_filter f);

#define SAMPLE_RATE 2000u /* a second, of all threads: 0.4% of a core at 2 us each */

/* The period after a time in which so many samples came (or got lost): longer by as many powers of
 * two as it takes, shorter by one, until the rate is between a quarter and twice SAMPLE_RATE. Never
 * below `least`: a thread that has slept may wake. `unit`: a power of two that the period is a
 * multiple of; 1: it is kept odd, as programs do things in even numbers; 0: it does not change. */
uint64_t sample_period(uint64_t period, uint64_t samples, uint64_t elapsed_ns, uint32_t unit,
                       uint64_t least);
/* An eighth longer at most: with another one in each pass, a loop whose turns are in step with the
 * samples shows other pages each time. */
uint64_t sample_other_period(uint64_t period, uint64_t random, uint32_t unit);

#endif
