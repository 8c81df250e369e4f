/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_STATS: what lay where, at the end of the program. One collection, two
 * printers (text, JSON), both into a mapped buffer: nothing is allocated. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "config.h"
#include "runtime/classify.h"
#include "runtime/internal.h"
#include "runtime/threadcap.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "service/sites.h"
#include "service/supply.h"
#include "sys/log.h"
#include "sys/os.h"

#define REPORT_VERSION 1
#define BUFFER_BYTES   ((size_t)4 << 20)
#define TEXT_SITES     10u
#define JSON_SITES     1000u

/* Per tier: field, heading of the text table. Bytes, but for the counts. */
#define TIER_FIELDS(X)                                                                             \
    X(charged, "charged", true)                                                                    \
    X(peak, "peak", true)                                                                          \
    X(limit, "limit", true)                                                                        \
    X(resident, "resident", true)                                                                  \
    X(heap_live, "heap live", true)                                                                \
    X(heap_free, "heap free", true)                                                                \
    X(mapped, "mapped", true)                                                                      \
    X(large_blocks, "large blocks", false)                                                         \
    X(mappings, "mappings", false)                                                                 \
    X(turned_away, "turned away", false)

struct tier_report {
#define FIELD(name, head, bytes) uint64_t name;
    TIER_FIELDS(FIELD)
#undef FIELD
};

struct report {
    enum hy_state state;
    char exe[256];
    struct tier_report tier[HY_TIERS];
    struct policy_view policy;
    struct threadcap_view threads;
    struct classify_view classify;
    uint64_t rss, file_private;
};

struct out {
    char *buf;
    size_t len;
};

static void add(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct out *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(o->buf + o->len, BUFFER_BYTES - o->len, fmt, ap);
    va_end(ap);
    if (n > 0)
        o->len = HY_MIN(o->len + (size_t)n, BUFFER_BYTES - 1);
}

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

static void collect(struct report *r)
{
    memset(r, 0, sizeof(*r));
    r->state = runtime_state();
    if (os_exe_path(r->exe, sizeof(r->exe)))
        r->exe[0] = '\0';
    r->rss = os_rss_bytes();
    threadcap_get(&r->threads);
    classify_get(&r->classify);
    if (r->state != HY_STEERING)
        return;
    maps_measure(SIZE_MAX);
    policy_get(&r->policy);
    for (int t = 0; t < HY_TIERS; t++)
        collect_tier((enum hy_tier)t, &r->tier[t], &r->policy);
    r->file_private = supply_private_bytes(HY_PM);
}

static const char *policy_name(char *buf, size_t cap)
{
    options_format(&hy_config.set, OPT_POLICY, buf, cap);
    return buf;
}

static const char *why_not(const struct report *r)
{
    if (r->state == HY_WATCH || r->state == HY_ENGAGING)
        return "the process stayed smaller than HYBRID_START";
    return hy_machine.why;
}

/* Sites by bytes, largest first: a bounded selection without a sort of all. */
static unsigned top_sites(site_id *ids, unsigned max)
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

/* --- text ------------------------------------------------------------------------- */

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

static void text_site(struct out *o, site_id id)
{
    struct site_info s;
    char total[16], live[16], frame[160];
    if (!sites_get(id, &s))
        return;
    add(o, "    %12s %12s %10" PRIu64 "  %-5s", human(s.bytes, total), human(s.live_bytes, live),
        s.count, s.has_tier ? hy_tier_name(s.tier) : "");
    for (unsigned f = 0; f < s.n_frames && f < 3; f++) {
        sites_format_frame(&s.frames[f], frame, sizeof(frame));
        add(o, "%s%s", f ? " < " : " ", frame);
    }
    add(o, "\n");
}

static void text_class(const struct classify_view *v, struct out *o)
{
    const struct classification *c = &v->found;
    if (v->counters.what[0] == '\0')
        return;
    add(o, "  counts: %s%s%s%s; figures of %s\n", v->counters.what, v->counters.why[0] ? " (" : "",
        v->counters.why, v->counters.why[0] ? ")" : "", v->machine);
    if (c->windows > 0)
        add(o, "  class found: %s%s, confidence %.2f%s, %u windows, %u changes\n",
            hy_class_name(c->cls), c->write_intensive ? ", write-intensive" : "", c->confidence,
            c->weak ? " (a hint)" : "", c->windows, c->phases);
    if (c->windows > 0 && !c->weak)
        add(o, "  slowdown on PM: %.2f (by latency %.2f, by bandwidth %.2f)\n", c->slowdown,
            c->latency_slowdown, c->bandwidth_slowdown);
}

static void print_text(const struct report *r, struct out *o)
{
    char b[16], c[16], name[32];
    add(o, "hybrid[%d]: report of %s: ", os_pid(), r->exe);
    if (r->state != HY_STEERING) {
        add(o, "%s; nothing was placed (%s); resident %s\n", runtime_state_name(r->state),
            why_not(r), human(r->rss, b));
        return;
    }
    add(o, "policy %s, class %s, PM: %s\n", policy_name(name, sizeof(name)),
        hy_class_name(r->policy.cls), hy_machine.why);
    add(o, "  %-14s %14s %14s\n", "", "DRAM", "PM");
#define FIELD(name_, head, bytes)                                                                  \
    if (bytes)                                                                                     \
        add(o, "  %-14s %14s %14s\n", head, human(r->tier[HY_DRAM].name_, b),                      \
            human(r->tier[HY_PM].name_, c));                                                       \
    else                                                                                           \
        add(o, "  %-14s %14" PRIu64 " %14" PRIu64 "\n", head, r->tier[HY_DRAM].name_,              \
            r->tier[HY_PM].name_);
    TIER_FIELDS(FIELD)
#undef FIELD
    add(o, "  resident in all %s; shared DRAM budget %s", human(r->rss, b),
        human(r->policy.dram_shared, c));
    add(o, r->policy.in_registry ? ", claimed %s\n" : ", alone (no registry)%s\n",
        r->policy.in_registry ? human(r->policy.claimed, b) : "");
    text_class(&r->classify, o);
    if (r->policy.wish || r->policy.asked)
        add(o, "  wishes %s of DRAM; asked to give up %s\n", human(r->policy.wish, b),
            human(r->policy.asked, c));
    if (r->threads.times)
        add(o, "  threads on %u of %u CPUs at the end; %u changes, %u threads left alone\n",
            r->threads.cap ? r->threads.cap : r->threads.base, r->threads.base, r->threads.times,
            r->threads.left_alone);
    if (r->policy.forced_bytes)
        add(o, "  %s went to DRAM beyond its limit: PM was full\n",
            human(r->policy.forced_bytes, b));
    if (r->file_private)
        add(o, "  %s of the PM files became private at fork: pages written since lie in DRAM\n",
            human(r->file_private, b));
    if (sites_ready() && sites_count() > 1) {
        site_id ids[TEXT_SITES];
        unsigned n = top_sites(ids, TEXT_SITES);
        add(o, "  call sites: %u, the largest %u by bytes allocated\n    %12s %12s %10s  %-5s %s\n",
            sites_count() - 1, n, "allocated", "live", "count", "tier", "site < caller < caller");
        for (unsigned i = 0; i < n; i++)
            text_site(o, ids[i]);
    }
}

/* --- JSON ------------------------------------------------------------------------- */

static void json_string(struct out *o, const char *s)
{
    add(o, "\"");
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            add(o, "\\%c", ch);
        else if (ch < 0x20 || ch >= 0x7f)
            add(o, "\\u%04x", ch);
        else
            add(o, "%c", ch);
    }
    add(o, "\"");
}

static void json_site(struct out *o, site_id id, bool first)
{
    struct site_info s;
    char frame[160];
    if (!sites_get(id, &s))
        return;
    add(o,
        "%s\n    {\"id\": \"%016" PRIx64 "\", \"count\": %" PRIu64 ", \"bytes\": %" PRIu64
        ", \"live_count\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"tier\": %s, \"frames\": [",
        first ? "" : ",", s.id_hash, s.count, s.bytes, s.live_count, s.live_bytes,
        !s.has_tier       ? "null"
        : s.tier == HY_PM ? "\"pm\""
                          : "\"dram\"");
    for (unsigned f = 0; f < s.n_frames; f++) {
        char id_text[BUILD_ID_MAX * 2 + 1];
        build_id_format(s.frames[f].build_id, BUILD_ID_MAX, id_text, sizeof(id_text));
        sites_format_frame(&s.frames[f], frame, sizeof(frame));
        add(o, "%s{\"build_id\": \"%s\", \"offset\": %" PRIu64 ", \"name\": ", f ? ", " : "",
            id_text, s.frames[f].offset);
        json_string(o, frame);
        add(o, "}");
    }
    add(o, "]}");
}

static void json_sites(struct out *o)
{
    static site_id ids[JSON_SITES];
    unsigned n = sites_ready() ? top_sites(ids, JSON_SITES) : 0;
    add(o, "  \"sites\": [");
    for (unsigned i = 0; i < n && o->len < BUFFER_BYTES - 8192; i++)
        json_site(o, ids[i], i == 0);
    add(o, "\n  ]\n}\n");
}

static void json_class(const struct classify_view *v, struct out *o)
{
    const struct classification *c = &v->found;
    add(o, "  \"classification\": {\"class\": \"%s\", \"weak\": %s, \"write_intensive\": %s, ",
        hy_class_name(c->cls), c->weak ? "true" : "false", c->write_intensive ? "true" : "false");
    /* Thousandths: a decimal point would depend on the locale. */
    add(o,
        "\"confidence_milli\": %u, \"slowdown_milli\": %u, \"latency_slowdown_milli\": %u, "
        "\"bandwidth_slowdown_milli\": %u, \"write_share_milli\": %u, ",
        (unsigned)(c->confidence * 1000), (unsigned)(c->slowdown * 1000),
        (unsigned)(c->latency_slowdown * 1000), (unsigned)(c->bandwidth_slowdown * 1000),
        (unsigned)(c->write_share * 1000));
    add(o, "\"windows\": %u, \"phases\": %u, \"cost_ns\": %" PRIu64 ", \"counters\": ", c->windows,
        c->phases, v->cost_ns);
    json_string(o, v->counters.what);
    add(o, ", \"why\": ");
    json_string(o, v->counters.why);
    add(o, ", \"machine\": ");
    json_string(o, v->machine);
    add(o, "},\n");
}

static void print_json(const struct report *r, struct out *o)
{
    char name[32];
    const struct policy_view *v = &r->policy;
    bool steering = r->state == HY_STEERING;
    add(o, "{\n  \"version\": %d,\n  \"libhybrid\": \"%s\",\n  \"pid\": %d,\n  \"exe\": ",
        REPORT_VERSION, HY_VERSION, os_pid());
    json_string(o, r->exe);
    add(o, ",\n  \"state\": \"%s\",\n  \"why\": ", runtime_state_name(r->state));
    json_string(o, steering ? hy_machine.why : why_not(r));
    add(o, ",\n  \"policy\": \"%s\",\n  \"class\": \"%s\",\n  \"rss\": %" PRIu64 ",\n",
        policy_name(name, sizeof(name)), hy_class_name(steering ? v->cls : settings_class()),
        r->rss);
    json_class(&r->classify, o);
    add(o, "  \"profile\": ");
    json_string(o, hy_config.have_profile ? hy_config.profile_file : "");
    add(o, ",\n  \"tiers\": {");
    for (int t = 0; t < HY_TIERS; t++) {
        const char *sep = "";
        add(o, "%s\n    \"%s\": {", t ? "," : "", hy_tier_name((enum hy_tier)t));
#define FIELD(name_, head, bytes)                                                                  \
    add(o, "%s\"" #name_ "\": %" PRIu64, sep, r->tier[t].name_);                                   \
    sep = ", ";
        TIER_FIELDS(FIELD)
#undef FIELD
        add(o, "}");
    }
    add(o, "\n  },\n  \"registry\": {\"path\": ");
    json_string(o, v->registry);
    add(o, ", \"joined\": %s, \"error\": ", v->in_registry ? "true" : "false");
    json_string(o, v->registry_error);
    add(o,
        ", \"dram_shared\": %" PRIu64 ", \"claimed\": %" PRIu64 ", \"wish\": %" PRIu64
        ", \"asked\": %" PRIu64 "},\n  \"threads\": {\"cap\": %u, \"cpus\": %u, \"changes\": %u"
        ", \"left_alone\": %u},\n  \"forced_dram_bytes\": %" PRIu64
        ",\n  \"file_private_bytes\": %" PRIu64 ",\n",
        v->dram_shared, v->in_registry ? v->claimed : 0, v->wish, v->asked, r->threads.cap,
        r->threads.base, r->threads.times, r->threads.left_alone, v->forced_bytes, r->file_private);
    json_sites(o);
}

void report_expand_name(const char *spec, char *path, size_t cap)
{
    size_t n = 0;
    for (; *spec && n + 24 < cap; spec++) {
        if (spec[0] == '%' && spec[1] == 'p') {
            n += (size_t)snprintf(path + n, cap - n, "%d", os_pid());
            spec++;
        } else {
            path[n++] = *spec;
        }
    }
    path[n] = '\0';
}

void report_at_exit(void)
{
    static struct report r;
    const char *spec = hy_config.set.stats;
    char path[HY_PATH_MAX + 32];
    struct out o = {0};
    void *m;

    if (!spec[0] || strcmp(spec, "0") == 0 || os_map_anon(BUFFER_BYTES, &m))
        return;
    o.buf = m;
    hy_guard_enter();
    collect(&r);
    if (strcmp(spec, "1") == 0) {
        print_text(&r, &o);
        log_text(o.buf, o.len);
    } else {
        print_json(&r, &o);
        report_expand_name(spec, path, sizeof(path));
        int e = os_write_file_atomic(path, o.buf, o.len);
        if (e)
            log_warn("HYBRID_STATS=%s cannot be written (%s)", path, os_error_name(e));
    }
    hy_guard_leave();
    os_unmap(m, BUFFER_BYTES);
}
