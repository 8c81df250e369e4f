/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/observe.h"

#include <string.h>

void observe(struct observed *ret)
{
    policy_get(&ret->policy);
    if (!ret->policy.in_registry)
        ret->policy.claimed = 0;
    classify_get(&ret->classify);
    threadcap_get(&ret->threads);
    migrate_get(&ret->migrate);
    pacing_get(&ret->pacing);
    llc_get(&ret->cache);
    ret->cache.in_force = ret->cache.now ? ret->cache.few : ret->cache.of;
    staging_get(&ret->tasks);
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
    pacing_tell(&o.pacing, &told);
    policy_tell(&told);
}
