/* SPDX-License-Identifier: BSD-2-Clause
 * Whom a writer on PM holds up, by what all participants tell (one snapshot of the registry). Pure:
 * each participant finds the same from the same snapshot.
 *
 * Model: DRAM beside q writers at PM is slower by the square of q, until the queue is full (004,
 * section V; classify/rules/slowdown.h). Of what several writers do to one victim, each answers for
 * its part of them. A writer gives up PACING_GIVES of its own speed at most, so somebody must gain
 * more than that; once paced, half of it will do, so that nothing flaps. */
#ifndef HYBRID_PLACE_RULES_PACING_H
#define HYBRID_PLACE_RULES_PACING_H

#include "classify/rules/slowdown.h"
#include "core/rules/regret.h"

#define PACING_GIVES 0.04
#define PACING_QUEUE WORK_PM_QUEUE

struct pacing_peer {
    double writers; /* threads with a write pending at PM, if it were not paced */
    double held;    /* predicted time beside a full queue, over alone; less than 1: not known */
};

struct pacing_victim {
    bool any;
    unsigned index; /* of the one that is held up most, of such that are alike the first */
    double loses;   /* its predicted time over that without us, less 1 */
    double lost;    /* by everybody: shares of their time, added up */
};

/* Predicted time of `i` beside the writers of all others, over its time alone. */
double pacing_hindered(const struct pacing_peer *p, unsigned n, unsigned i);
/* `paced`: self is paced now. */
struct pacing_victim pacing_find(const struct pacing_peer *p, unsigned n, unsigned self,
                                 bool paced);

/* What trials may cost a paced program that runs at `gain` of its own best speed, as a share of
 * its time: what it does not give up already, and in any case what they may cost everybody. So
 * pacing costs PACING_GIVES + REGRET_SHARE of the time in which it holds somebody up, at most. */
double pacing_tries(double gain);

/* Windows differ: a victim begins the pacing when it is found in two one after the other, and ends
 * it when nobody is found in three. Zero bytes: not paced. */
struct pacing_turn {
    bool paced;
    unsigned against; /* windows one after the other that say the opposite */
};
/* What the last window found; true: `paced` has changed. */
bool pacing_settle(struct pacing_turn *t, bool found);

#endif
