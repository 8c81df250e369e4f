/* SPDX-License-Identifier: BSD-2-Clause
 * hybrid-measure: the loops behind `hybridctl calibrate`. An ordinary program, built twice:
 * plain, and instrumented for the emulated machine, which it then measures. */
#ifndef HYBRID_TOOLS_MEASURE_H
#define HYBRID_TOOLS_MEASURE_H

#include "base/cpuset.h"
#include "base/types.h"

#define LINE_BYTES  64
#define LINE_WORDS  (LINE_BYTES / 8)
#define MAX_THREADS 1024

/* --- measure_loops.c ------------------------------------------------------------ */

/* Memory is an array of lines of 64 bytes. Each has the address of another one, so that all
 * form one cycle in random order; its own number, its place in the cycle, and a word to be
 * written. So every loop can be checked afterwards, and none can be left out. */
enum { WORD_NEXT, WORD_STAMP, WORD_PLACE, WORD_NUMBER };

enum loop_kind {
    LOOP_CHASE,  /* each load's address comes from the one before */
    LOOP_UPDATE, /* the same, and each line is written to */
    LOOP_READ,   /* in order */
    LOOP_WRITE,
    LOOP_RREAD, /* in random order, independent of each other */
    LOOP_RWRITE,
    LOOP_CYCLE, /* additions, each of the result of the one before; no memory */
    LOOP_KINDS,
};
const char *loop_name(enum loop_kind kind);

/* Where a thread is in its part of the memory. */
struct walk {
    uint64_t *base;     /* first line of the part */
    uint64_t lines;     /* in it; random order takes the largest power of two within */
    uint64_t at, x;     /* next in order; state of the random order */
    uint64_t sum, want; /* what was read, and what should have been */
    uint64_t stamp;
    uint64_t *line; /* of a chase */
    uint64_t place, steps;
};

int lines_link(uint64_t *base, uint64_t lines, uint64_t seed); /* 0 or -ENOMEM */
void walk_begin(struct walk *w, uint64_t *base, uint64_t lines, uint64_t stamp);
void walk_chain_from(struct walk *w, uint64_t *line);
void walk_on(enum loop_kind kind, struct walk *w, uint64_t count);
/* Did the loop do what it should? `before` is the walk as it was `count` lines ago. */
bool walk_is_right(enum loop_kind kind, const struct walk *w, const struct walk *before,
                   uint64_t count);

/* --- measure_memory.c ------------------------------------------------------------- */

struct memories {
    uint64_t *lines[HY_TIERS];
    uint64_t bytes;        /* of each */
    struct hy_cpus cpus;   /* to measure with */
    unsigned cpu[HY_CPUS]; /* the same, in the order of their use */
    unsigned n_cpus, n_cores;
    uint64_t llc_bytes; /* largest cache, 0 unknown */
    bool emulated;      /* on the emulated machine */
    bool ordinary;      /* what is called PM is DRAM */
    char pm[512];       /* what it is, for people */
};

/* `spec` as HYBRID_PM; bytes 0: chosen. 0, or -errno and a line for the user; -EINVAL: it is
 * the user's to change. The memory is used and in its place afterwards. */
int memories_get(const char *spec, uint64_t bytes, struct memories *ret, char *why, size_t cap);

/* --- measure_clock.c: never instrumented ---------------------------------------------- */

int64_t clock_ns(void);     /* virtual on the emulated machine */
int64_t clock_cpu_ns(void); /* of the calling thread, real */
bool clock_is_virtual(void);
/* Fresh memory is of this tier of the emulated machine, if there is one. */
void emulated_tier(void *base, size_t bytes, int tier);

#endif
