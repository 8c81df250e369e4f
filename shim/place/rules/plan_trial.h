/* SPDX-License-Identifier: BSD-2-Clause
 * A plan of call sites (site_plan.h) beside what it promised. Of all work since it began, the time
 * with its lines where they were found, and where the plan would have them: so how much the
 * program does at a time does not matter. Which sites it uses does, and the promise is for all
 * of a run as it was recorded: while PLAN_SEEN of that has not passed, a phase that uses what lies
 * on PM is no broken promise; nor is, among windows, one that uses more of it than others. A plan
 * that takes PLAN_WORSE longer than it promised lasts for as long as the purse of regret (regret.h)
 * pays for the rest; then it is given up. Pure. */
#ifndef HYBRID_PLACE_RULES_PLAN_TRIAL_H
#define HYBRID_PLACE_RULES_PLAN_TRIAL_H

#include "classify/rules/slowdown.h"
#include "core/rules/regret.h"

#define PLAN_WORSE 0.1
#define PLAN_SEEN  0.5

/* Zero bytes: it has just begun. */
struct plan_trial {
    struct regret_trial trial;
    double placed_ns, promised_ns; /* of all windows, elapsed time */
    double threads_ns;             /* that threads ran, */
    struct work sum;               /* and what they did; exposure and foreseen times its reads */
};

/* `recorded`: lines of the recorded run, and the shares that the plan leaves on PM. false:
 * give it up; the trial has ended then. A window that tells nothing changes nothing. */
bool plan_trial_window(struct plan_trial *t, struct regret *purse, double run_ns,
                       const struct machine_figures *f, const struct window *w,
                       const struct work *recorded);
/* How much longer than promised, so far. */
double plan_trial_ratio(const struct plan_trial *t);

#endif
