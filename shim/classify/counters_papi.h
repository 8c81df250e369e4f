/* SPDX-License-Identifier: BSD-2-Clause
 * Counting through PAPI, for counters.c. */
#ifndef HYBRID_CLASSIFY_COUNTERS_PAPI_H
#define HYBRID_CLASSIFY_COUNTERS_PAPI_H

#include "base/types.h"

/* What an event of counters.def stands for. */
enum papi_count {
    PAPI_COUNT_INSTRUCTIONS,
    PAPI_COUNT_CYCLES,
    PAPI_COUNT_READS,
    PAPI_COUNT_READS_DRAM,
    PAPI_COUNT_READS_PM,
    PAPI_COUNT_WRITES,
    PAPI_COUNT_WRITES_DRAM,
    PAPI_COUNT_WRITES_PM,
    PAPI_COUNT_STALL_CYCLES,
    PAPI_COUNT_STALL_NS,
    PAPI_COUNT_CACHE_NS,
    PAPI_COUNT_WAIT_NS,
    PAPI_COUNT_FORESEEN,
    PAPI_COUNT_ELAPSED_NS,
    PAPI_COUNT_COMPUTE_NS,
    PAPI_COUNT_COUNT
};
enum papi_set { PAPI_SET_HARDWARE, PAPI_SET_SOFTWARE };

struct papi_values {
    uint32_t have;
    uint64_t value[PAPI_COUNT_COUNT]; /* since counting began */
};

/* Load PAPI (NULL: the system's) and begin to count. 0, or -errno and why. -EBUSY: the program uses
 * PAPI. `spare`: as many counters of the processor are left to others, if leaving
 * out what is foreseen is enough. */
int papi_begin(const char *soname, enum papi_set set, unsigned spare, char *why, size_t why_cap);
/* -EIO: the counters are gone (the program has shut PAPI down). */
int papi_values(struct papi_values *ret);
void papi_end(void);
/* In a forked child: forget, without a call. */
void papi_child(void);
struct papi_open {
    unsigned events, threads;
    unsigned counted_pct; /* of the time in which an event counts, when there are fewer counters */
    bool spares;          /* an event was left out for others */
};
struct papi_open papi_get(void);

#endif
