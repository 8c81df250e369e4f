/* SPDX-License-Identifier: BSD-2-Clause
 * While DRAM is short: what is freed of it, is it kept for who allocates next, or given back for
 * whoever touches memory next? Kept, it lies idle, and what else the program uses lies on PM
 * instead. Given back, it is a new page for who takes it again: all its lines have to come from
 * memory once more. Both have a price, by the model of the two memories. Pure. */
#ifndef HYBRID_PLACE_RULES_IDLE_H
#define HYBRID_PLACE_RULES_IDLE_H

#include "classify/rules/slowdown.h"

/* Pages of DRAM. */
struct idle_look {
    double idle;    /* free: kept, or they were until they went back */
    double retaken; /* such ones that were taken again, in a ns */
    double used;    /* by the program, in all */
};

/* What both cost, of the program's time: means of the last looks. All zero at the begin. */
struct idle_prices {
    double kept, back;
    uint32_t looks;
};

/* After one more look; `k` is the work of a window of so many ns. true: what is freed had better be
 * kept. */
bool idle_is_cheap(struct idle_prices *p, const struct machine_figures *f, const struct work *k,
                   double window_ns, const struct idle_look *look);

#endif
