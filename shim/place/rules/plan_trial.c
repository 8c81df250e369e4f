/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/plan_trial.h"

static double excess(double placed_ns, double promised_ns)
{
    return HY_MAX(placed_ns - promised_ns * (1 + PLAN_WORSE), 0.0);
}

bool plan_trial_window(struct plan_trial *t, struct regret *purse, double run_ns,
                       const struct machine_figures *f, const struct window *w,
                       const struct work *recorded)
{
    struct work k;
    enum stall_known known;
    double elapsed = window_get(w, WINDOW_elapsed_ns);

    if (!window_has(w, WINDOW_reads_pm) || work_of_window(f, w, &k, &known) != 0 || elapsed <= 0)
        return true;
    double placed = work_time(f, &k, k.pm_reads, k.pm_writes, k.threads).total_ns;
    double plan = work_time(f, &k, recorded->pm_reads, recorded->pm_writes, k.threads).total_ns;
    if (!(placed > 0 && plan > 0))
        return true;
    double promised = elapsed * (plan / placed);
    t->placed_ns += elapsed;
    t->promised_ns += promised;
    t->lines += k.reads + k.writes;
    if (t->lines < PLAN_SEEN * (recorded->reads + recorded->writes))
        return true;
    double lost = excess(t->placed_ns, t->promised_ns), next = excess(elapsed, promised);
    if (!t->trial.running && !regret_begin(purse, &t->trial, run_ns, 0, 0))
        return true; /* others have overdrawn the purse: that is not this plan's fault */
    if (lost == 0 || regret_lost(purse, &t->trial, run_ns, lost, next))
        return true;
    regret_end(purse, &t->trial, lost);
    return false;
}
