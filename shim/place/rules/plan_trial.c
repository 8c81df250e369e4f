/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/plan_trial.h"

static double excess(double placed_ns, double promised_ns)
{
    return HY_MAX(placed_ns - promised_ns * (1 + PLAN_WORSE), 0.0);
}

static void add(struct plan_trial *t, const struct work *k, double elapsed)
{
    struct work *s = &t->sum;

    t->placed_ns += elapsed;
    t->threads_ns += k->threads * elapsed;
    s->compute_ns += k->compute_ns;
    s->reads += k->reads;
    s->writes += k->writes;
    s->exposure += k->exposure * k->reads;
    s->foreseen += k->foreseen * k->reads;
    s->pm_reads += k->pm_reads * k->reads;
    s->pm_writes += k->pm_writes * k->writes;
}

static double part(double sum, double of)
{
    return of > 0 ? sum / of : 0;
}

static struct work mean(const struct plan_trial *t)
{
    struct work k = t->sum;

    k.threads = part(t->threads_ns, t->placed_ns);
    k.exposure = part(k.exposure, k.reads);
    k.foreseen = part(k.foreseen, k.reads);
    k.pm_reads = part(k.pm_reads, k.reads);
    k.pm_writes = part(k.pm_writes, k.writes);
    return k;
}

/* What the time of the work would be with the plan's shares on PM, of what it is. */
static double promise(const struct machine_figures *f, const struct work *k,
                      const struct work *recorded)
{
    double placed = work_time(f, k, k->pm_reads, k->pm_writes, k->threads).total_ns;
    double plan = work_time(f, k, recorded->pm_reads, recorded->pm_writes, k->threads).total_ns;

    return placed > 0 && plan > 0 ? plan / placed : 0;
}

double plan_trial_ratio(const struct plan_trial *t)
{
    return part(t->placed_ns, t->promised_ns);
}

bool plan_trial_window(struct plan_trial *t, struct regret *purse, double run_ns,
                       const struct machine_figures *f, const struct window *w,
                       const struct work *recorded)
{
    struct work k, sum;
    enum stall_known known;
    double elapsed = window_get(w, WINDOW_elapsed_ns);

    if (!window_has(w, WINDOW_reads_pm) || work_of_window(f, w, &k, &known) != 0 || elapsed <= 0)
        return true;
    double here = promise(f, &k, recorded);
    if (here <= 0)
        return true;
    add(t, &k, elapsed);
    sum = mean(t);
    t->promised_ns = t->placed_ns * promise(f, &sum, recorded);
    if (sum.reads + sum.writes < PLAN_SEEN * (recorded->reads + recorded->writes))
        return true;
    double lost = excess(t->placed_ns, t->promised_ns), next = excess(elapsed, elapsed * here);
    if (!t->trial.running && !regret_begin(purse, &t->trial, run_ns, 0, 0))
        return true; /* others have overdrawn the purse: that is not this plan's fault */
    if (lost == 0 || regret_lost(purse, &t->trial, run_ns, lost, next))
        return true;
    regret_end(purse, &t->trial, lost);
    return false;
}
