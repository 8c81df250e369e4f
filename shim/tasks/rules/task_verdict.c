/* SPDX-License-Identifier: BSD-2-Clause */
#include "tasks/rules/task_verdict.h"

double verdict_staged(struct task_verdict *v, double cost_ns)
{
    double lost = 0;
    if (v->stages >= VERDICT_MOST || (v->stages >= VERDICT_STAGES && v->ran >= VERDICT_RAN)) {
        lost = HY_MAX(v->cost_ns - v->saved_ns, 0.0);
        v->bad = v->saved_ns > v->cost_ns ? 0 : v->bad + 1;
        v->off = v->bad >= VERDICT_BAD;
        v->cost_ns = v->saved_ns = 0;
        v->stages = v->ran = 0;
    }
    v->cost_ns += cost_ns;
    v->stages++;
    return lost;
}

void verdict_ran(struct task_verdict *v, double saved_ns)
{
    v->saved_ns += saved_ns;
    v->ran++;
}

bool verdict_hopeless(const struct task_verdict *v, const struct task_fit *f, uint32_t pages,
                      double uses, double slowdown, double move_ns)
{
    if (v->off)
        return true;
    if (f->n < VERDICT_TASKS)
        return false;
    if (pages == 0 || fit_mean(f) < TASK_TINY_NS)
        return true;
    struct fit_line l = fit_line(f);
    double most = fit_mean(f); /* it cannot save more than it takes */
    if (l.known)
        most = HY_MIN(l.pm_ns, l.saving + 2 * l.doubt);
    else if (slowdown >= 1)
        most = 2 * fit_saving(f, slowdown);
    return most * HY_MAX(uses, 1.0) < 2 * pages * move_ns;
}
