/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/observe.h"

#include <string.h>

#include "core/purse.h"
#include "place/rules/division.h"
#include "settings/settings.h"

void observe(struct observed *ret)
{
    policy_get(&ret->policy);
    classify_get(&ret->classify);
    threadcap_get(&ret->threads);
    migrate_get(&ret->migrate);
    pacing_get(&ret->pacing);
    staging_get(&ret->tasks);
}

/* What DRAM brings this program. */
static void tell_gain(const struct observed *o, uint32_t slowdown, struct registry_told *told)
{
    const struct migrate_pass *last = &o->migrate.last;
    double run_ns;

    purse_open(&run_ns);
    purse_close();
    told->run_ns = (uint64_t)run_ns;
    told->weight = (uint32_t)(hy_config.set.weight * 100 + 0.5);
    told->need_bytes = hy_config.have_profile ? hy_config.profile.footprint : 0;
    if (last->cold_pages == 0)
        return;
    division_curve(slowdown, last->cold, told->time_at);
    told->curve_bytes = last->cold_pages * HY_PAGE;
    told->curve_dram = last->on[HY_DRAM] * HY_PAGE;
    told->move_ns = (uint32_t)last->exchange_ns;
}

void observe_tell(void)
{
    static struct observed o; /* the control thread's */
    const struct classification *c = &o.classify.found;

    observe(&o);
    bool sure = !c->weak && c->cls == o.policy.cls; /* not of a class that somebody named */
    struct registry_told told = {
        .cap = o.threads.cap,
        .confidence = sure ? hy_milli(c->confidence) : 0,
        .slowdown = c->weak ? 0 : hy_milli(c->slowdown),
        .placed_slowdown = hy_milli(o.classify.tally.last_placed),
        .promoted_bytes = o.migrate.up_bytes,
        .demoted_bytes = o.migrate.down_bytes,
        .written_bytes = o.migrate.last.written_pages * HY_PAGE,
        .marks = c->write_intensive && !c->weak ? REGISTRY_WRITES : 0,
        .tracked_bytes = (o.migrate.last.on[HY_DRAM] + o.migrate.last.on[HY_PM]) * HY_PAGE,
    };
    tell_gain(&o, c->weak ? 0 : hy_milli(c->slowdown), &told);
    pacing_tell(&o.pacing, &told);
    policy_tell(&told);
}
