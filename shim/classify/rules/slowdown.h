/* SPDX-License-Identifier: BSD-2-Clause
 * How long the same work takes with its data elsewhere. From a window of counts comes
 * the work behind it (computing, lines, how much of a miss's latency is waited for),
 * from the work and a machine's figures the time for any placement. Pure.
 *
 * Time of n threads on one memory or two:
 *     (computing + sum over media of stall * (1 + Q * u / (1 - u))) / n
 * u being the medium's use by the other threads, (n - 1) / n of all; and no less than what the
 * busier medium needs to move the lines. The stall of a medium is
 *     lines read * (share in streams * wait for a line of a stream + exposure of the others *
 *     read latency) + WRITE_EXPOSED * lines written * write latency */
#ifndef HYBRID_CLASSIFY_RULES_SLOWDOWN_H
#define HYBRID_CLASSIFY_RULES_SLOWDOWN_H

#include "classify/rules/machine_figures.h"
#include "classify/rules/window.h"

struct work {
    double compute_ns;    /* of all threads */
    double reads, writes; /* lines */
    /* Part of the latency of a read that a thread waits, 0 to 1; for those foreseen a tenth
     * stands, whatever the medium. */
    double exposure;
    double foreseen;            /* share of the lines read in an order that can be foreseen */
    double threads;             /* running at a time, on average */
    double pm_reads, pm_writes; /* shares that were on PM */
    double waited_ns; /* of all threads, as memory was busy, with others too; 0: not counted */
};

/* Time saved by one line on DRAM instead of PM; of all threads together. */
struct line_worth {
    double read_ns, write_ns;
};

/* How the stall was found, best first. */
enum stall_known {
    STALL_IDLE,    /* counted, apart from the waiting for busy memory */
    STALL_LOADED,  /* counted, with it */
    STALL_CYCLES,  /* what instructions do not explain of the time */
    STALL_ASSUMED, /* from the number of misses alone */
};

struct work_time {
    double total_ns;   /* the result */
    double threads_ns; /* computing and stall of idle memory, per thread: no bandwidth limit */
    double service_ns; /* the busier medium moves the lines */
};

/* -ENODATA: there are no counts to know it from; -EAGAIN: nothing ran. */
int work_of_window(const struct machine_figures *f, const struct window *w, struct work *ret,
                   enum stall_known *ret_known);
/* How much of the stall is waiting for one miss after the other: about 0 for streams, 0.25 for
 * misses at random that overlap, 1 for chains. */
double work_chained(const struct work *work);
/* What one line read or written on PM costs more than on DRAM, by the slope of the predicted time
 * where these shares are on PM: of the program's whole time. */
struct line_worth work_line_worth(const struct machine_figures *f, const struct work *work,
                                  double pm_reads, double pm_writes);
/* What one line more costs that is read from DRAM and written back: of the program's whole time. */
double work_dram_line(const struct machine_figures *f, const struct work *work);
/* `pm`: share of reads and writes on PM. */
struct work_time work_time(const struct machine_figures *f, const struct work *work,
                           double pm_reads, double pm_writes, double threads);
/* Threads that have a write pending at PM, on average, while this work takes `elapsed_ns`. */
double work_pm_writers(const struct machine_figures *f, const struct work *work, double elapsed_ns);
/* No program is predicted to be so many times slower with all its data on PM: what others tell of
 * themselves is held against it. */
double work_most_slowdown(const struct machine_figures *f);
/* Writers at PM beyond which DRAM becomes no slower (004, section V). */
#define WORK_PM_QUEUE 9.0
/* How many times slower DRAM is to this work beside so many writers of others. */
double work_dram_beside_writers(const struct machine_figures *f, const struct work *work);

#endif
