/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/observe.h"

#include <string.h>

#include "core/purse.h"
#include "place/rules/division.h"
#include "settings/settings.h"

#define LATELY 8.0 /* looks */

static struct {
    struct tally seen;
    double dram, placed, pm;
} lately; /* the control thread's */

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
    ret->cache.streams = ret->cache.reuse == REGISTRY_STREAMS;
    ret->cache.in_force = ret->cache.now ? ret->cache.few : ret->cache.of;
    staging_get(&ret->tasks);
}

/* Predicted times of the last looks, each counting for less the older it is: a program's phases
 * differ, and what DRAM is divided by shall not follow each of them. */
static void smooth(const struct tally *a)
{
    if (a->dram_ns < lately.seen.dram_ns) /* in a forked child */
        memset(&lately, 0, sizeof(lately));
    lately.dram += (a->dram_ns - lately.seen.dram_ns) - lately.dram / LATELY;
    lately.placed += (a->placed_ns - lately.seen.placed_ns) - lately.placed / LATELY;
    lately.pm += (a->pm_ns - lately.seen.pm_ns) - lately.pm / LATELY;
    lately.seen = *a;
}

/* What DRAM brings this program. */
static void tell_gain(const struct observed *o, struct registry_published *published)
{
    const struct migrate_pass *last = &o->migrate.last;

    published->run_ns = (uint64_t)purse_run_ns();
    published->weight = (uint32_t)(hy_config.set.weight * 100 + 0.5);
    published->need_bytes = hy_config.have_profile ? hy_config.profile.footprint : 0;
    published->move_ns = (uint64_t)last->exchange_ns;
    smooth(&o->classify.tally);
    if (published->weight == 0 || last->cold_pages == 0 || lately.dram <= 0 ||
        o->classify.found.weak)
        return;
    division_curve(hy_milli(lately.pm / lately.dram), last->cold, published->time_at);
    published->curve_now = hy_milli(lately.placed / lately.dram);
    published->curve_bytes = last->cold_pages * HY_PAGE;
    published->curve_dram = last->on[HY_DRAM] * HY_PAGE;
    published->curve_takes = last->takes_pages * HY_PAGE;
}

void observe_publish(void)
{
    static struct observed o; /* the control thread's */
    const struct classification *c = &o.classify.found;

    observe(&o);
    bool sure = !c->weak && c->cls == o.policy.cls; /* not of a class that somebody named */
    struct registry_published published = {
        .cap = o.threads.cap,
        .confidence = sure ? hy_milli(c->confidence) : 0,
        .slowdown = c->weak ? 0 : hy_milli(c->slowdown),
        .placed_slowdown = hy_milli(o.classify.tally.last_placed),
        .promoted_bytes = o.migrate.up_bytes,
        .demoted_bytes = o.migrate.down_bytes,
        .written_bytes = o.migrate.last.written_pages * HY_PAGE,
        .marks = c->write_intensive && !c->weak ? REGISTRY_WRITES : 0,
        .cache_class = o.cache.reuse,
        .cache_ways = o.cache.now ? o.cache.few : 0,
        .tracked_bytes = (o.migrate.last.on[HY_DRAM] + o.migrate.last.on[HY_PM]) * HY_PAGE,
    };
    tell_gain(&o, &published);
    pacing_publish(&o.pacing, &published);
    policy_publish(&published);
}
