/* SPDX-License-Identifier: BSD-2-Clause
 * What a plan is measured by: where first touch puts the same sites. */
#include "place/rules/plan_trial.h"
#include "place/rules/site_plan.h"

/* Of those that have no place yet, the one that begins first. */
static unsigned next_to_come(const struct plan_site *site, const struct site_plan *plan)
{
    unsigned next = plan->n;

    for (unsigned i = 0; i < plan->n; i++)
        if (plan->place[i].why != PLAN_PART && (next == plan->n || site[i].from < site[next].from))
            next = i;
    return next;
}

double site_plan_floor(const struct machine_figures *f, const struct plan_work *work,
                       const struct plan_site *site, unsigned n, uint64_t share,
                       struct plan_scratch *scratch)
{
    struct site_plan *at = &scratch->other;
    uint64_t free[PLAN_TIMES];

    at->n = HY_MIN(n, (unsigned)PLAN_MAX);
    for (unsigned t = 0; t < PLAN_TIMES; t++)
        free[t] = share;
    for (unsigned i = 0; i < at->n; i++)
        at->place[i] = (struct plan_tier){.why = PLAN_NO_ROOM};
    for (unsigned k = 0; k < at->n; k++) {
        unsigned i = next_to_come(site, at);
        struct plan_tier *p = &at->place[i];

        p->why = PLAN_PART;
        p->dram_bytes = HY_MIN(site[i].bytes, site_plan_least(free, site[i].held));
        site_plan_take(free, site[i].held, p->dram_bytes);
    }
    return site_plan_time(f, work, site, at);
}

bool site_plan_pays(const struct machine_figures *f, const struct plan_work *work,
                    const struct plan_site *site, const struct site_plan *plan,
                    struct plan_scratch *scratch)
{
    for (unsigned i = 0; i < plan->n; i++)
        if (site[i].fixed)
            return true;
    return site_plan_time(f, work, site, plan) * (1 + PLAN_WORSE) <
           site_plan_floor(f, work, site, plan->n, plan->share, scratch);
}
