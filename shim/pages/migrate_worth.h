/* SPDX-License-Identifier: BSD-2-Clause
 * Moves where accesses are counted page by page: what a page is worth on DRAM by the model of
 * this program at this moment, and how many exchanges may be paid. All by the pages' thread. */
#ifndef HYBRID_PAGES_MIGRATE_WORTH_H
#define HYBRID_PAGES_MIGRATE_WORTH_H

#include "classify/rules/slowdown.h"
#include "pages/rules/movelist.h"

struct migrate_worth {
    bool counted;           /* accesses are */
    uint64_t passes;        /* since counting began, in this phase */
    struct line_worth line; /* by the last window */
    struct worth_rule rule;
    uint8_t below[SCORES];
    uint8_t fill_from; /* the least rank that may come to free DRAM */
    double earned_ns;  /* by earlier exchanges, as measured, and not spent on new ones */
};

/* Before a look. False: accesses are not counted, or nothing is known of the program yet. */
bool worth_begin(struct migrate_worth *v);
/* After it: what earlier moves brought. Where they have lost time, the purse of regret pays. */
void worth_end(struct migrate_worth *v);
/* Exchanges that may be made now, by what was earned and what the purse has left, and between
 * which pages (v->below). */
uint64_t worth_swaps(const struct migrate_worth *v);
void worth_paid(struct migrate_worth *v, uint64_t up, uint64_t down);

#endif
