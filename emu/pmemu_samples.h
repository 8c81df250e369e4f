/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses on the emulated machine; a part of pmemu.h, which includes it. */
#ifndef PMEMU_SAMPLES_H
#define PMEMU_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is sampled, to be combined: */
#define PMEMU_SAMPLE_READS   1u /* lines read from a medium, by a load or a store */
#define PMEMU_SAMPLE_WRITES  2u /* lines that turned dirty in the LLC */
#define PMEMU_SAMPLE_LLC_HIT 4u /* accesses that missed L1 and hit the LLC */

enum pmemu_source { PMEMU_FROM_DRAM, PMEMU_FROM_PM, PMEMU_FROM_LLC };

struct pmemu_sample {
    uint64_t ready;      /* its number in the ring + 1 when complete */
    uint64_t address;    /* accessed */
    int64_t vtime_ns;    /* of the thread */
    uint32_t thread;     /* the kernel's number */
    uint32_t latency_ns; /* of the source when idle */
    uint32_t stall_ns;   /* what the thread waited: overlapped, so less as a rule */
    uint8_t store;       /* 1: a store; 0: a load */
    uint8_t source;      /* enum pmemu_source: where the line came from */
    uint8_t dirtied;     /* 1: the line turned dirty; of `medium` */
    uint8_t medium;      /* tier of the page */
};

/* Written by the program's threads, read by one reader; nobody waits. A writer claims number
 * n by head = n + 1 if n - tail < slots, else it adds 1 to `lost`; fills slot n % slots and
 * stores ready = n + 1 with release order. The reader loads `ready` with acquire order, copies
 * the slot, and stores tail = n + 1 with release order; writers load tail with acquire order. */
struct pmemu_ring {
    uint64_t slots; /* a power of two */
    uint64_t period;
    uint32_t events, reserved;
    uint64_t unused1[5];
    uint64_t head, lost; /* writers' */
    uint64_t unused2[6];
    uint64_t tail; /* the reader's */
    uint64_t unused3[7];
    struct pmemu_sample slot[];
};

/* One event in `period` of each thread becomes a sample (at random distances of that mean;
 * 1: all). The ring takes at most `bytes`, at least 64 samples. One at a time: -EBUSY;
 * -EINVAL; -ENOMEM. Sampling costs no virtual time; a reader that is part of the program is
 * itself seen reading. A child of fork is not sampled. */
int pmemu_samples_open(unsigned events, uint64_t period, size_t bytes, struct pmemu_ring **ret);
/* No new samples; the ring can be read on (it is never unmapped: do not open many). */
void pmemu_samples_close(void);

/* 1: the next sample is in *ret; 0: none now. */
static inline int pmemu_samples_next(struct pmemu_ring *r, struct pmemu_sample *ret)
{
    uint64_t n = __atomic_load_n(&r->tail, __ATOMIC_RELAXED);
    const struct pmemu_sample *s = &r->slot[n & (r->slots - 1)];
    if (__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE) != n + 1)
        return 0;
    *ret = *s;
    __atomic_store_n(&r->tail, n + 1, __ATOMIC_RELEASE);
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
