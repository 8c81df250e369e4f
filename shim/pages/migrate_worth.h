/* SPDX-License-Identifier: BSD-2-Clause
 * Moves where accesses are counted page by page: what a page is worth on DRAM by the model of
 * this program at this moment, and how many exchanges may be paid. All by the pages' thread. */
#ifndef HYBRID_PAGES_MIGRATE_WORTH_H
#define HYBRID_PAGES_MIGRATE_WORTH_H

#include "classify/rules/slowdown.h"
#include "core/rules/regret.h"
#include "pages/rules/takeback.h"

struct migrate_worth {
    bool counted;           /* accesses are */
    uint64_t passes;        /* since counting began, in this phase */
    struct line_worth line; /* by the last window */
    struct worth_rule rule;
    double threads;                 /* of the program, running in that window */
    double most_units;              /* an access of the last passes is worth at most */
    struct worth_foretold foretold; /* of late */
    uint8_t below[SCORES];
    uint8_t fill_from;               /* the least rank that may come to free DRAM */
    struct exchange_account account; /* of all exchanges so far, by the counts of the moved pages */
    struct regret_trial trial;       /* the purse's share in it */
};

/* Before a look. False: accesses are not counted, or nothing is known of the program yet. */
bool worth_begin(struct migrate_worth *v);
/* What it costs the program that two pages change places. */
double worth_exchange_ns(const struct migrate_worth *v);
/* Have so many passes been counted that others may go by them? */
bool worth_is_evidence(const struct migrate_worth *v);
/* Pages of PM that would be on DRAM if there were room: those that are worth the move, or, where
 * accesses are not counted, are in use. */
uint64_t worth_wanted(const struct migrate_worth *v);
/* After a look: what earlier moves brought. Where they have lost time, the purse of regret pays. */
void worth_end(struct migrate_worth *v);
/* Exchanges that may be made now, by what was earned and what the purse has left, and between
 * which pages (v->below). */
uint64_t worth_swaps(const struct migrate_worth *v);
/* Earlier ones are to be taken back now (sampler_takeback); then worth_took_back. */
bool worth_takes_back(const struct migrate_worth *v);
void worth_took_back(struct migrate_worth *v, uint64_t pairs);
/* So many pages were moved, there or back. */
void worth_paid(struct migrate_worth *v, uint64_t up, uint64_t down);

#endif
