/* SPDX-License-Identifier: BSD-2-Clause
 * The purse of regret: what trying something out (a thread count, an exchange of pages, a spread, a
 * plan) may cost a run, all trials together: REGRET_SHARE of its time so far, against never having
 * tried. Pure: time is an argument, the state is the caller's. Times are ns of the run (what it
 * takes longer), not of its threads.
 *
 * A trial is regret_begin, then regret_lost at each look (window), then regret_end:
 *
 *   - It begins only if the purse covers `worst_ns`, the most that it can lose before its next look
 *     and the way back; as much is put aside, so trials may run beside each other (two users, one
 *     struct, under one lock).
 *   - At each look it says what it has lost so far, and what it can lose until the next. It goes on
 *     only if both are covered. false: break it off now.
 *   - When it ends, the larger of what it has lost and of what was foreseen (a copy of pages is
 * paid in any case) is gone for good; the rest of what was put aside is back in the purse. What was
 *     won is not put in: one user's luck is no other's credit.
 *
 * The bound: if no trial loses more between two looks than it said it could, what all trials have
 * lost never exceeds REGRET_SHARE of the run's time. One that does (a window that came out longer)
 * exceeds it by that excess, once for each trial that is running: an overdrawn purse begins nothing
 * until time has filled it. tests/unit/core/test_regret.c checks both. */
#ifndef HYBRID_CORE_RULES_REGRET_H
#define HYBRID_CORE_RULES_REGRET_H

#include "base/types.h"

#define REGRET_SHARE 0.01

/* Zero bytes are a full and untouched purse. */
struct regret {
    double spent_ns; /* by trials that have ended */
    double aside_ns; /* for those that run */
};

/* Zero bytes: none is running. */
struct regret_trial {
    bool running;
    double foreseen_ns, aside_ns, lost_ns;
};

/* What trials may still lose, `run_ns` after the start; below 0: overdrawn. */
double regret_left(const struct regret *r, double run_ns);
/* false, and nothing is changed: the purse does not cover the larger of the two, or one of them is
 * no number. */
bool regret_begin(struct regret *r, struct regret_trial *t, double run_ns, double foreseen_ns,
                  double worst_ns);
/* `lost_ns`: of the whole trial so far (below 0: it has won); `next_ns`: what it may lose more
 * until the next look. false: it must be broken off. */
bool regret_lost(struct regret *r, struct regret_trial *t, double run_ns, double lost_ns,
                 double next_ns);
/* Also for one that is not running: nothing happens. `lost_ns` as above, the last word. */
void regret_end(struct regret *r, struct regret_trial *t, double lost_ns);

/* A trial without an end, whose later wins make up for its own earlier losses (pages that were
 * exchanged): what it has lost by now, below 0: won. It begins with the first call. */
void regret_balance(struct regret *r, struct regret_trial *t, double lost_ns);

#endif
