/* SPDX-License-Identifier: BSD-2-Clause
 * What a run's windows add up to: their counts, and how long the same work is predicted to
 * take with all data on DRAM, all on PM, and as they lay (slowdown.h). The model's times
 * are stretched so that `as placed` is the time that was measured: only their ratios are
 * predictions. The two others are of all threads, whatever they were kept to meanwhile. Pure. */
#ifndef HYBRID_CLASSIFY_RULES_TALLY_H
#define HYBRID_CLASSIFY_RULES_TALLY_H

#include "classify/rules/slowdown.h"

struct tally {
    uint64_t windows;
    uint64_t sum[WINDOW_FIELD_COUNT]; /* of the fields that can be added up */
    uint32_t have;                    /* as in struct window: known in some window */
    uint64_t judged;                  /* windows whose times could be predicted */
    double dram_ns, placed_ns, pm_ns; /* of these, elapsed time */
    double busy_ns, compute_ns;  /* time of all threads; of it what goes with the clock of cores */
    double service_ns;           /* what the busier memory needs to move the lines */
    double last_placed, last_pm; /* of the last one, over all-DRAM; 0: not known */
};

void tally_add(struct tally *t, const struct machine_figures *f, const struct window *w);
/* What another one has counted, as well. */
void tally_merge(struct tally *t, const struct tally *more);
/* Can a field be added up over windows (and not, as the number of threads, only be told)? */
bool tally_adds_up(enum window_field f);

#endif
