/* SPDX-License-Identifier: BSD-2-Clause
 * What was counted in one window of time: the classifier's input, and a line of a
 * recording. Each field may be missing. Pure. */
#ifndef HYBRID_CLASSIFY_RULES_WINDOW_H
#define HYBRID_CLASSIFY_RULES_WINDOW_H

#include "base/types.h"

/* field, name in recordings, what. A line has 64 bytes. */
#define WINDOW_FIELDS(X)                                                                           \
    X(elapsed_ns, "elapsed-ns", "length of the window")                                            \
    X(end_ns, "end-ns", "clock at its end: monotonic, or the emulated machine's")                  \
    X(busy_ns, "busy-ns", "time in which threads computed or waited for memory, summed")           \
    X(threads, "threads", "how many there were")                                                   \
    X(instructions, "instructions", "")                                                            \
    X(cycles, "cycles", "of running threads")                                                      \
    X(reads, "reads", "lines read from either memory: last-level misses of loads and stores")      \
    X(reads_pm, "reads-pm", "of these, from PM")                                                   \
    X(writes, "writes", "lines written back, or store misses, which lead to as many")              \
    X(writes_pm, "writes-pm", "of these, to PM")                                                   \
    X(foreseen, "foreseen", "of the lines read, those that a prefetcher asked for")                \
    X(stall_ns, "stall-ns", "waited for memory, not for caches; as if idle if wait-ns is known")   \
    X(wait_ns, "wait-ns", "and longer, as it was busy")                                            \
    X(dram_bytes, "dram-bytes", "of the program's data on DRAM")                                   \
    X(pm_bytes, "pm-bytes", "on PM")                                                               \
    X(faults, "faults", "page faults")                                                             \
    X(grown_bytes, "grown-bytes", "growth of the resident set")                                    \
    X(counted_pct, "counted-pct", "share of the window in which events counted; they are scaled")  \
    X(cap, "cap", "threads at a time that this library keeps the program to; 0: all")

enum window_field {
#define WINDOW_X(field, name, what) WINDOW_##field,
    WINDOW_FIELDS(WINDOW_X)
#undef WINDOW_X
        WINDOW_FIELD_COUNT
};

struct window {
    uint32_t have; /* bit f: field f is known */
    uint64_t value[WINDOW_FIELD_COUNT];
};

static inline bool window_has(const struct window *w, enum window_field f)
{
    return (w->have >> f & 1) != 0;
}

/* 0 when it is not known. */
static inline double window_get(const struct window *w, enum window_field f)
{
    return window_has(w, f) ? (double)w->value[f] : 0;
}

static inline void window_set(struct window *w, enum window_field f, uint64_t v)
{
    w->have |= 1u << f;
    w->value[f] = v;
}

#endif
