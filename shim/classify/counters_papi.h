/* SPDX-License-Identifier: BSD-2-Clause
 * Counting through PAPI, for counters.c. */
#ifndef HYBRID_CLASSIFY_COUNTERS_PAPI_H
#define HYBRID_CLASSIFY_COUNTERS_PAPI_H

#include "base/types.h"

/* What an event of counters.def stands for. */
#define PAPI_COUNTS(X)                                                                             \
    X(INSTRUCTIONS)                                                                                \
    X(CYCLES)                                                                                      \
    X(READS)                                                                                       \
    X(READS_DRAM)                                                                                  \
    X(READS_PM)                                                                                    \
    X(WRITES)                                                                                      \
    X(WRITES_DRAM)                                                                                 \
    X(WRITES_PM)                                                                                   \
    X(STALL_CYCLES)                                                                                \
    X(STALL_NS)                                                                                    \
    X(CACHE_NS)                                                                                    \
    X(WAIT_NS)                                                                                     \
    X(FORESEEN)                                                                                    \
    X(ELAPSED_NS)                                                                                  \
    X(COMPUTE_NS)

enum papi_count {
#define PAPI_X(name) PAPI_COUNT_##name,
    PAPI_COUNTS(PAPI_X)
#undef PAPI_X
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
unsigned papi_events(void), papi_threads(void);
/* An event was left out for them. */
bool papi_spares(void);
/* Percent of the time in which an event counts, when there are fewer counters. */
unsigned papi_counted_pct(void);

#endif
