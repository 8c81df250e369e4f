/* SPDX-License-Identifier: BSD-2-Clause
 * Bandwidth balancing (paper 002, section 5.2): while DRAM's bandwidth is used up, hot pages
 * go to PM step by step, the read domain first, until DRAM's use begins to drop. Pure. */
#ifndef HYBRID_PAGES_RULES_BALANCE_H
#define HYBRID_PAGES_RULES_BALANCE_H

#include "base/types.h"

enum balance_state {
    BALANCE_OFF,  /* DRAM has bandwidth left */
    BALANCE_SHED, /* pages go down */
    BALANCE_HOLD  /* enough went: no read-domain page comes up */
};

struct balance {
    enum balance_state state;
    double peak;    /* highest use while shedding */
    uint64_t step;  /* pages to shed in this pass */
    uint64_t total; /* shed so far */
    unsigned above; /* windows in a row above the threshold */
};

/* One window: DRAM's bandwidth in use over what it has (0 to 1; < 0: not known), and hot pages
 * on DRAM that could go. All zero at first. Afterwards `step` and `state` hold. */
void balance_window(struct balance *b, double use, uint64_t hot_pages);

#endif
