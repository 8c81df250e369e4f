/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS=1. */
#include <inttypes.h>
#include <stdio.h>

#include "report/report_parts.h"
#include "sys/os.h"

#define TEXT_SITES 10u

static const char *human(uint64_t bytes, char buf[16])
{
    if (bytes >= UINT64_MAX / 8)
        (void)snprintf(buf, 16, "-");
    else if (bytes >= 10 * HY_GIB)
        (void)snprintf(buf, 16, "%.1f GiB", (double)bytes / (double)HY_GIB);
    else if (bytes >= 10 * HY_MIB)
        (void)snprintf(buf, 16, "%.1f MiB", (double)bytes / (double)HY_MIB);
    else
        (void)snprintf(buf, 16, "%.1f KiB", (double)bytes / (double)HY_KIB);
    return buf;
}

/* In integers, as printf's point would depend on the locale. */
static const char *seconds(double ns, char buf[32])
{
    static const char *const unit[] = {"us", "ms", "s"};
    unsigned u = 0;
    double v = ns / 1e3;

    for (; v >= 1000 && u < 2; u++)
        v /= 1e3;
    uint64_t tenths = (uint64_t)(v * 10 + 0.5);
    (void)snprintf(buf, 32, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10), unit[u]);
    return buf;
}

/* Only a profile or its plan gives sites a memory of their own. */
static bool any_tier(const site_id *ids, unsigned n)
{
    struct site_info s;
    for (unsigned i = 0; i < n; i++)
        if (sites_get(ids[i], &s) && s.has_tier)
            return true;
    return false;
}

static void text_site(struct textbuf *o, site_id id, bool tiers)
{
    struct site_info s;
    char total[16], live[16], frame[160];
    if (!sites_get(id, &s))
        return;
    textbuf_add(o, "    %12s %12s %10" PRIu64, human(s.bytes, total), human(s.live_bytes, live),
                s.count);
    if (tiers)
        textbuf_add(o, "  %-5s", s.has_tier ? hy_tier_name(s.tier) : "-");
    for (unsigned f = 0; f < s.n_frames && f < 3; f++) {
        sites_format_frame(&s.frames[f], frame, sizeof(frame));
        textbuf_add(o, "%s%s", f ? " < " : " ", frame);
        if (f == 0 && s.nth)
            textbuf_add(o, "#%u", s.nth); /* as in profiles */
    }
    textbuf_add(o, "\n");
}

static void text_plan(const struct planned_view *v, struct textbuf *o)
{
    char b[16], c[16];
    if (!v->on)
        return;
    textbuf_add(o, "  plan: %u of %u call sites get %s of %s DRAM; ", v->on_dram, v->sites,
                human(v->quota, b), human(v->share, c));
    textbuf_add(o, "%s kept for what did not come; slowdown by the figures %.2f\n",
                human(v->kept, b), v->slowdown);
}

static void text_admission(const struct admission_view *a, struct textbuf *o)
{
    if (!a->asked)
        return;
    textbuf_add(o, "  began after %" PRIu64 " ms", a->waited_ns / 1000000);
    if (a->pid)
        textbuf_add(o, " of waiting for %s (%d)", a->name, a->pid);
    textbuf_add(o, ": %s\n", a->why);
}

static void text_class(const struct classify_view *v, struct textbuf *o)
{
    const struct classification *c = &v->found;
    if (v->counters.what[0] == '\0')
        return;
    textbuf_add(o, "  counts: %s%s%s%s; figures of %s\n", v->counters.what,
                v->counters.why[0] ? " (" : "", v->counters.why, v->counters.why[0] ? ")" : "",
                v->machine);
    if (c->windows > 0)
        textbuf_add(o, "  class found: %s%s, confidence %.2f%s, %u windows, %u changes\n",
                    hy_class_name(c->cls), c->write_intensive ? ", write-intensive" : "",
                    c->confidence, c->weak ? " (a hint)" : "", c->windows, c->phases);
    if (c->windows > 0 && !c->weak)
        textbuf_add(o, "  slowdown on PM: %.2f (by latency %.2f, by bandwidth %.2f)\n", c->slowdown,
                    c->latency_slowdown, c->bandwidth_slowdown);
}

static void text_threads(const struct threadcap_view *t, const struct threadsearch_view *s,
                         struct textbuf *o)
{
    if (t->created)
        textbuf_add(o, "  threads: %" PRIu64 " made, %u at most, %u.%u running at a time\n",
                    t->created, t->most, t->running_milli / 1000, t->running_milli % 1000 / 100);
    if (t->times || t->cap)
        textbuf_add(o, "  threads on %u of %u CPUs at the end; %u changes, %u threads left alone\n",
                    t->cap ? t->cap : t->base, t->base, t->times, t->left_alone);
    if (s->searches == 0)
        return;
    textbuf_add(o, "  threads searched %u times; the last time %u on PM fill it; tried (speed)",
                s->searches, s->knee);
    for (unsigned i = 0; i < s->tried; i++)
        textbuf_add(o, "%s %u (%u.%03u)", i ? "," : "", s->count[i], s->permille[i] / 1000,
                    s->permille[i] % 1000);
    textbuf_add(o, s->chosen ? ": %u\n" : ": not finished\n", s->chosen);
}

static void text_pacing(const struct pacing_view *p, struct textbuf *o)
{
    if (p->times)
        textbuf_add(o,
                    "  paced %u times, to %u of %u threads at the fewest%s; the last time for %s\n",
                    p->times, p->fewest, p->own_best, p->paced ? ", also at the end" : "", p->name);
    if (p->most_hindered >= 1.01)
        textbuf_add(o, "  slower by %u %% at most by others' writes to PM, as predicted\n",
                    (unsigned)((p->most_hindered - 1) * 100 + 0.5));
}

static void text_cache(const struct llc_view *v, struct textbuf *o)
{
    if (v->few_ns == 0)
        return;
    textbuf_add(o, "  %u of %u ways of the last-level cache for %" PRIu64 ".%03u s", v->few, v->of,
                v->few_ns / 1000000000, (unsigned)(v->few_ns / 1000000 % 1000));
    if (v->times)
        textbuf_add(o, "; kept %u times%s, %u.%03u of the speed with all", v->times,
                    v->now ? ", also at the end" : "", v->speed_milli / 1000,
                    v->speed_milli % 1000);
    textbuf_add(o, v->given_back ? "; slower by it and given back %u times\n" : "\n",
                v->given_back);
}

static void text_gain(const struct tally *a, struct textbuf *o)
{
    char dram[32], placed[32], pm[32];

    if (a->judged == 0)
        return;
    textbuf_add(o, "  predicted time of the same work: %s on DRAM, %s as it lay, %s on PM\n",
                seconds(a->dram_ns, dram), seconds(a->placed_ns, placed), seconds(a->pm_ns, pm));
}

static void text_record(const struct record_view *v, struct textbuf *o)
{
    if (v->windows)
        textbuf_add(o, "  recorded: %u windows\n", v->windows);
    if (v->samples)
        textbuf_add(o, "  accesses of call sites by %s: %" PRIu64 " samples\n", v->accesses,
                    v->samples);
    else if (v->sites)
        textbuf_add(o, "  accesses of call sites are not known%s%s%s\n", v->accesses[0] ? " (" : "",
                    v->accesses, v->accesses[0] ? ")" : "");
}

static void text_migration(const struct migrate_view *m, struct textbuf *o)
{
    char up[16], down[16];

    if (m->state == MIGRATE_IS_OFF) {
        textbuf_add(o, "  pages are not moved: %s\n", m->why);
        return;
    }
    if (m->passes == 0)
        return;
    textbuf_add(o,
                "  pages moved: %s to DRAM, %s to PM in %" PRIu64 " looks; %" PRIu64
                " pages refused; %" PRIu64 " pauses\n",
                human(m->up_bytes, up), human(m->down_bytes, down), m->passes, m->refused_pages,
                m->pauses);
    textbuf_add(o, "  pages watched by %s%s%s, moved by %s\n", m->writes,
                m->reads && m->reads[0] ? ", reads by " : "", m->reads ? m->reads : "", m->way);
    if (m->beside.found_pages == 0)
        return;
    textbuf_add(o,
                "  others moved %" PRIu64 " pages that were found so, %" PRIu64
                " of them undoing moves\n",
                m->beside.found_pages, m->beside.undone_pages);
    if (m->beside.truces)
        textbuf_add(o, "  moves rested %" PRIu64 " times as others undid them\n", m->beside.truces);
}

static void text_tasks(const struct staging_view *v, struct textbuf *o)
{
    char staged[16], evicted[16], saved[32], cost[32];

    if (!v->watched && v->tasks == 0)
        return;
    textbuf_add(o, "  tasks: %" PRIu64 " with dependences watched, %u types, %u given up\n",
                v->tasks, v->types, v->types_off);
    if (v->stages == 0)
        return;
    textbuf_add(o,
                "  tasks' data staged: %s to DRAM for %" PRIu64 " tasks, %s made room; %" PRIu64
                " were late\n",
                human(v->staged_pages * HY_PAGE, staged), v->stages,
                human(v->evicted_pages * HY_PAGE, evicted), v->late);
    textbuf_add(o,
                "  tasks that ran on staged data: %" PRIu64
                "; %s%s of their time saved for %s of moves\n",
                v->hits, v->saved_ns < 0 ? "-" : "",
                seconds((double)(v->saved_ns < 0 ? -v->saved_ns : v->saved_ns), saved),
                seconds((double)v->cost_ns, cost));
}

void report_text(const struct report *r, struct textbuf *o)
{
    char b[16], c[16], name[32];
    textbuf_add(o, "hybrid[%d]: report of %s: ", os_pid(), r->exe);
    if (r->state != HY_STEERING) {
        textbuf_add(o, "%s; nothing was placed (%s); resident %s\n", runtime_state_name(r->state),
                    report_why_not(r), human(r->rss, b));
        return;
    }
    textbuf_add(o, "policy %s, class %s, PM: %s\n", report_policy_name(name, sizeof(name)),
                hy_class_name(r->now.policy.cls), hy_machine.why);
    textbuf_add(o, "  %-14s %14s %14s\n", "", "DRAM", "PM");
#define FIELD(name_, head, bytes)                                                                  \
    if (bytes)                                                                                     \
        textbuf_add(o, "  %-14s %14s %14s\n", head, human(r->tier[HY_DRAM].name_, b),              \
                    human(r->tier[HY_PM].name_, c));                                               \
    else                                                                                           \
        textbuf_add(o, "  %-14s %14" PRIu64 " %14" PRIu64 "\n", head, r->tier[HY_DRAM].name_,      \
                    r->tier[HY_PM].name_);
    TIER_FIELDS(FIELD)
#undef FIELD
    uint64_t placed = r->tier[HY_DRAM].resident + r->tier[HY_PM].resident;
    textbuf_add(o, "  resident in all %s, %s of it not placed (program, stacks, from before)\n",
                human(HY_MAX(r->rss, placed), b), human(r->rss - HY_MIN(placed, r->rss), c));
    textbuf_add(o, "  shared DRAM budget %s", human(r->now.policy.dram_shared, c));
    textbuf_add(o, r->now.policy.in_registry ? ", claimed %s\n" : ", alone (no registry)%s\n",
                r->now.policy.in_registry ? human(r->now.policy.claimed, b) : "");
    text_class(&r->now.classify, o);
    if (r->now.policy.wish || r->now.policy.asked)
        textbuf_add(o, "  wishes %s of DRAM; asked to give up %s\n", human(r->now.policy.wish, b),
                    human(r->now.policy.asked, c));
    text_admission(&r->admission, o);
    text_plan(&r->plan, o);
    text_gain(&r->now.classify.tally, o);
    text_record(&r->record, o);
    text_migration(&r->now.migrate, o);
    text_tasks(&r->now.tasks, o);
    text_threads(&r->now.threads, &r->search, o);
    text_pacing(&r->now.pacing, o);
    text_cache(&r->now.cache, o);
    if (r->now.policy.forced_bytes)
        textbuf_add(
            o, "  %s went to DRAM beyond its limit: %s\n", human(r->now.policy.forced_bytes, b),
            r->tier[HY_PM].turned_away ? "PM was full" : "memory that was there and grew in place");
    if (r->file_private)
        textbuf_add(
            o, "  %s of the PM files became private at fork: pages written since lie in DRAM\n",
            human(r->file_private, b));
    if (sites_ready() && sites_count() > 1) {
        site_id ids[TEXT_SITES];
        unsigned n = report_top_sites(ids, TEXT_SITES);
        bool tiers = any_tier(ids, n);
        textbuf_add(
            o, "  call sites: %u, the largest %u by bytes allocated\n    %12s %12s %10s%s %s\n",
            sites_count() - 1, n, "allocated", "live", "count", tiers ? "  tier " : "",
            "site < caller < caller");
        for (unsigned i = 0; i < n; i++)
            text_site(o, ids[i], tiers);
    }
}
