/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS: what lay where, at the end of the program. */
#include <string.h>

#include "base/guard.h"
#include "heap/heap.h"
#include "heap/supply.h"
#include "place/maps.h"
#include "report/report.h"
#include "report/report_parts.h"
#include "settings/settings.h"
#include "sys/env.h"
#include "sys/log.h"
#include "sys/os.h"

static void collect_tier(enum hy_tier t, struct tier_report *r, const struct policy_view *v)
{
    struct heap_stats h;
    unsigned ranges;
    uint64_t charged;
    heap_get_stats(t, &h);
    maps_totals(t, &ranges, &r->mapped, &charged);
    r->charged = v->used[t];
    r->peak = v->peak[t];
    r->limit = v->limit[t];
    r->resident = supply_resident_bytes(t) + charged;
    r->heap_live = h.live_bytes;
    r->heap_free = h.dirty_bytes;
    r->large_blocks = h.large_blocks;
    r->mappings = ranges;
    r->turned_away = v->refused[t];
}

/* What is told in words, or put together from several parts. */
static void collect_words(struct report *r)
{
    const struct record_view *record = &r->record;
    double hindered = r->now.pacing.most_hindered;

    options_format(&hy_config.set, OPT_POLICY, r->policy_name, sizeof(r->policy_name));
    r->state_name = runtime_state_name(r->state);
    r->profile = hy_config.have_profile ? hy_config.profile_file : "";
    r->why =
        r->state == HY_SERVING ? "the process stayed smaller than HYBRID_START" : hy_machine.why;
    r->accesses_by = record->samples ? record->accesses : "";
    r->no_accesses = record->samples ? "" : record->accesses;
    r->slower_percent = hindered >= 1.01 ? (unsigned)((hindered - 1) * 100 + 0.5) : 0;
    r->placed = r->tier[HY_DRAM].resident + r->tier[HY_PM].resident;
    r->not_placed = r->rss - HY_MIN(r->placed, r->rss);
    r->placed = HY_MAX(r->rss, r->placed);
    struct textbuf tried = {.buf = r->tried, .cap = sizeof(r->tried)};
    for (unsigned i = 0; i < r->search.tried; i++)
        textbuf_add(&tried, "%s %u (%u.%03u)", i ? "," : "", r->search.count[i],
                    r->search.permille[i] / 1000, r->search.permille[i] % 1000);
}

static void collect_placed(struct report *r)
{
    maps_measure(SIZE_MAX);
    observe(&r->now);
    for (int t = 0; t < HY_TIERS; t++)
        collect_tier((enum hy_tier)t, &r->tier[t], &r->now.policy);
    r->rss = os_rss_bytes(); /* at the same moment */
    r->file_private = supply_private_bytes(HY_PM);
}

static void collect(struct report *r)
{
    memset(r, 0, sizeof(*r));
    r->state = runtime_state();
    if (os_program_path(r->exe, sizeof(r->exe)))
        r->exe[0] = '\0';
    r->rss = os_rss_bytes();
    r->now.policy.cls = settings_class();
    threadcap_get(&r->now.threads);
    threadsearch_get(&r->search);
    planned_get(&r->plan);
    admission_get(&r->admission);
    classify_get(&r->now.classify);
    record_get(&r->record);
    if (r->state == HY_STEERING)
        collect_placed(r);
    collect_words(r);
}

unsigned report_top_sites(site_id *ids, unsigned max)
{
    struct site_info a, b;
    unsigned n = 0, total = sites_count();
    for (unsigned id = 1; id < total; id++) {
        if (!sites_get((site_id)id, &a))
            continue;
        unsigned at = n;
        while (at > 0 && sites_get(ids[at - 1], &b) && b.bytes < a.bytes)
            at--;
        if (at == max)
            continue;
        unsigned keep = HY_MIN(n, max - 1);
        memmove(ids + at + 1, ids + at, (keep - HY_MIN(at, keep)) * sizeof(*ids));
        ids[at] = (site_id)id;
        n = keep + 1;
    }
    return n;
}

bool report_wanted(void)
{
    const char *spec = hy_config.set.stats;
    return spec[0] && strcmp(spec, "0") != 0;
}

void report_at_exit(void)
{
    static struct report r;
    const char *spec = hy_config.set.stats;
    char path[HY_PATH_MAX + 32];
    struct textbuf o = {.cap = REPORT_BYTES};
    void *m;

    if (!report_wanted() || os_map_anon(REPORT_BYTES, &m))
        return;
    o.buf = m;
    hy_guard_enter();
    collect(&r);
    if (strcmp(spec, "1") == 0) {
        /* A script's commands are many and small, and who looks for them names a file. */
        if (r.state == HY_STEERING || !env_parent_has_same()) {
            report_text(&r, &o);
            log_text(o.buf, o.len);
        }
    } else {
        report_json(&r, &o);
        os_output_name(spec, path, sizeof(path));
        int e = os_write_file_atomic(path, o.buf, o.len);
        if (e)
            settings_cannot_write(OPT_STATS, path, e);
    }
    hy_guard_leave();
    os_unmap(m, REPORT_BYTES);
}
