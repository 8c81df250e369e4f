/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl explain as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/ctl/ctl.h"
#include "tools/ctl/explain.h"

/* All of it fits a terminal of 80 columns, but for long names of files. */
#define WIDTH       80
#define SITES_SHOWN 20u

/* "12.5M" */
static const char *count(double n, char *buf, size_t cap)
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P"};
    unsigned u = 0;
    while (n >= 1000 && u + 1 < HY_ARRAY_SIZE(unit)) {
        n /= 1000;
        u++;
    }
    snprintf(buf, cap, u == 0 || n >= 100 ? "%.0f%s" : "%.1f%s", n, unit[u]);
    return buf;
}

/* "12.5M" of "12.5 MiB" */
static const char *short_size(uint64_t bytes, char *buf, size_t cap)
{
    char *unit;
    (void)ctl_size(bytes, buf, cap);
    unit = strchr(buf, ' ');
    if (unit) {
        unit[0] = unit[1];
        unit[1] = '\0';
    }
    return buf;
}

static const char *class_text(enum hy_class c)
{
    switch (c) {
    case HY_CLASS_CPU:
        return "CPU-bound";
    case HY_CLASS_BANDWIDTH:
        return "bandwidth-sensitive";
    case HY_CLASS_LATENCY:
        return "latency-sensitive";
    default:
        return "not known";
    }
}

/* --- text -------------------------------------------------------------------------- */

static void text_program(const struct explained *e)
{
    const struct profile *p = &e->profile;
    const struct profile_source *src = &p->source;
    char id[2 * BUILD_ID_MAX + 1], a[32], b[32];

    printf("%s\n", e->file);
    printf("  program    %s", p->exe[0] ? p->exe : p->path[0] ? p->path : "any");
    if (p->build_id_len > 0) {
        build_id_format(p->build_id, p->build_id_len, id, sizeof(id));
        printf(", build %.16s", id);
    }
    if (p->args[0])
        printf(", arguments %s", p->args);
    putchar('\n');
    if (src->method[0])
        printf("  recorded   %s\n", src->method);
    if (src->method[0])
        printf("             %s%s%s%u run%s, %" PRIu64 " windows\n",
               src->figures[0] ? "figures of " : "", src->figures, src->figures[0] ? ", " : "",
               HY_MAX(src->runs, 1), src->runs > 1 ? "s" : "", src->windows);
    if (src->accesses[0])
        printf("  accesses   %s\n", src->accesses);
    if (src->samples > 0)
        printf("             %" PRIu64 " samples, each of about %" PRIu64
               " lines; %.0f%% of lines at known sites\n",
               src->samples, src->period, src->known);
    printf("  machine    %s\n", e->machine.said);
    printf("             %.0f ns a line on DRAM, %.0f on PM; PM reads %.1f GB/s, writes %.1f\n",
           e->machine.figures.medium[HY_DRAM].read_ns, e->machine.figures.medium[HY_PM].read_ns,
           e->machine.figures.medium[HY_PM].seq_read_mbs / 1000,
           e->machine.figures.medium[HY_PM].seq_write_mbs / 1000);
    printf("  memory     %s; DRAM for it %s (%s)\n",
           p->footprint ? ctl_size(p->footprint, a, sizeof(a)) : "not known",
           ctl_size(e->share, b, sizeof(b)), e->share_from);
}

/* Those that take longest first; lines by the ms: what they ask of memory. */
static void text_behaviours(const struct profile *p)
{
    bool told[PROFILE_BEHAVIOURS] = {false};
    double all = 1e-3;

    for (unsigned i = 0; i < p->n_behaviours; i++)
        all += p->behaviours[i].ms;
    for (unsigned n = 0; p->n_behaviours > 1 && n < p->n_behaviours; n++) {
        const struct profile_behaviour *b = NULL;
        char r[32], w[32];

        for (unsigned i = 0; i < p->n_behaviours; i++)
            if (!told[i] && (!b || p->behaviours[i].ms > b->ms))
                b = &p->behaviours[i];
        told[b - p->behaviours] = true;
        double ms = HY_MAX(b->ms, 1e-3);
        printf("  %-10s %3.0f%% of time: %s lines read, %s written a ms; slowdown %.2f\n",
               n == 0 ? "behaviours" : "", 100 * b->ms / all,
               count((double)b->reads / ms, r, sizeof(r)),
               count((double)b->writes / ms, w, sizeof(w)), b->slowdown);
    }
}

static void text_class(const struct explained *e)
{
    const struct profile *p = &e->profile;
    printf("  class      %s%s", class_text(p->cls),
           p->write_intensive == 1 ? ", write-intensive" : "");
    if (p->source.confidence > 0)
        printf(", confidence %.2f", p->source.confidence);
    putchar('\n');
    if (p->exposure >= 0)
        printf("             waits for %.0f%% of a miss's latency; %.0f%% of lines can be "
               "foreseen\n",
               100 * p->exposure, 100 * HY_MAX(p->foreseen, 0));
    for (unsigned i = 0; p->n_phases > 1 && i < p->n_phases; i++)
        printf("             from %" PRIu64 " ms: %s, slowdown on PM %.2f\n", p->phases[i].start_ms,
               class_text(p->phases[i].cls), p->phases[i].slowdown);
    text_behaviours(p);
    if (p->slowdown > 0)
        printf("  slowdown   %.2f with all on PM, as recorded\n", p->slowdown);
    if (e->counted)
        printf("  predicted  1.00 all on DRAM, %.2f as below, %.2f all on PM\n", e->slowdown_plan,
               e->slowdown_pm);
    if (p->threads[HY_DRAM] || p->threads[HY_PM] || p->threads_seen) {
        printf("  threads   ");
        if (p->threads[HY_DRAM])
            printf(" best %u on DRAM", p->threads[HY_DRAM]);
        if (p->threads[HY_PM])
            printf("%s best %u on PM", p->threads[HY_DRAM] ? "," : "", p->threads[HY_PM]);
        if (p->threads_seen)
            printf("%s up to %u seen", p->threads[HY_DRAM] || p->threads[HY_PM] ? ";" : "",
                   p->threads_seen);
        putchar('\n');
    }
}

static const char *tier_text(const struct explained *e, unsigned i)
{
    if (!e->counted && !e->site[i].fixed)
        return "-";
    return e->plan.place[i].tier == HY_PM ? "PM" : "DRAM";
}

/* A word for the table; what it means is told below it, once. */
static const struct reason {
    const char *word, *meaning;
} reasons[] = {
    [PLAN_CHOSEN] = {"chosen", "the best use of the DRAM"},
    [PLAN_PART] = {"part", "as much of it as fits"},
    [PLAN_NAMED] = {"named", "the profile names its memory"},
    [PLAN_IDLE] = {"idle", "DRAM would save nothing or next to it"},
    [PLAN_NO_ROOM] = {"no room", "others save more for the bytes"},
    [PLAN_TOO_LARGE] = {"large", "one block is more than all the DRAM, and is not split"},
};

static void text_reasons(const struct explained *e, unsigned shown)
{
    unsigned used = 0;
    for (unsigned k = 0; k < shown; k++)
        if (e->counted || e->site[e->shown[k]].fixed)
            used |= 1u << e->plan.place[e->shown[k]].why;
    for (unsigned w = 0; w < HY_ARRAY_SIZE(reasons); w++)
        if (used >> w & 1)
            printf("       %s: %s\n", reasons[w].word, reasons[w].meaning);
}

/* A long name without its middle: beginning and end tell sites apart. */
static const char *short_name(const char *name, char *buf, size_t cap)
{
    size_t len = strlen(name), tail = 12;
    if (len < cap)
        return name;
    snprintf(buf, cap, "%.*s..%s", (int)(cap - 3 - tail), name, name + len - tail);
    return buf;
}

static void text_site(const struct explained *e, unsigned number, unsigned i)
{
    const struct plan_site *s = &e->site[i];
    double per_byte = e->plan.place[i].saves_ns / (double)HY_MAX(s->bytes, (uint64_t)1);
    bool known = e->counted || s->fixed;
    char a[32], b[32], r[32] = "-", w[32] = "-", saves[32] = "-", name[25];

    if (e->counted) {
        count(s->reads, r, sizeof(r));
        count(s->writes, w, sizeof(w));
        snprintf(saves, sizeof(saves), per_byte < 10 ? "%.2f" : "%.0f", per_byte);
    }
    bool hot = known && s->heat && s->parts && e->plan.place[i].why == PLAN_PART;
    printf(" %4u  %-24s %7s %7s %6s %6s %5s  %-4s %s%s\n", number,
           short_name(explain_name(e, i), name, sizeof(name)), short_size(s->bytes, a, sizeof(a)),
           s->block ? short_size(s->block, b, sizeof(b)) : "-", r, w, saves, tier_text(e, i),
           known ? reasons[e->plan.place[i].why].word : "-", hot ? ", hot first" : "");
}

static void text_sites(const struct explained *e)
{
    unsigned shown = e->all ? e->n_sites : HY_MIN(e->n_sites, SITES_SHOWN);

    if (e->n_sites == 0)
        return;
    printf("\n %4s  %-24s %7s %7s %6s %6s %5s  %-4s %s\n", e->counted ? "rank" : "", "site",
           "in use", "block", "reads", "writes", "ns/B", "to", "why");
    for (unsigned k = 0; k < shown; k++)
        text_site(e, k + 1, e->shown[k]);
    if (shown < e->n_sites)
        printf("       and %u more (--all)\n", e->n_sites - shown);
    text_reasons(e, shown);
}

void explain_text(const struct explained *e)
{
    char a[32], b[32];

    text_program(e);
    text_class(e);
    text_sites(e);
    if (e->counted) {
        struct work k = site_plan_lines(&e->work, e->site, &e->plan);
        unsigned n = 0;

        for (unsigned i = 0; i < e->n_sites; i++)
            n += e->plan.place[i].dram_bytes > 0;
        printf("\n  %u of %u on DRAM (%s of %s): %.0f%% of lines read, %.0f%% of written\n", n,
               e->n_sites, ctl_size(e->plan.dram_bytes, a, sizeof(a)),
               ctl_size(e->share, b, sizeof(b)), 100 * (1 - k.pm_reads), 100 * (1 - k.pm_writes));
    }
    if (e->n_notes > 0)
        printf("\n  notes\n");
    for (unsigned i = 0; i < e->n_notes; i++)
        ctl_print_wrapped(e->note[i], 4, WIDTH);
}

/* --- JSON --------------------------------------------------------------------------- */

static void json_decimal(struct ctl_json *j, const char *key, double v)
{
    char text[64];
    if (isfinite(v))
        snprintf(text, sizeof(text), "%.6g", v);
    ctl_json_literal(j, key, isfinite(v) ? text : "null");
}

/* Of a line, read and written, on each memory. */
static void json_latencies(struct ctl_json *j, const struct machine_figures *f)
{
    ctl_json_open(j, "latency_ns", '{');
    for (int t = 0; t < HY_TIERS; t++) {
        ctl_json_open(j, hy_tier_name((enum hy_tier)t), '[');
        json_decimal(j, NULL, f->medium[t].read_ns);
        json_decimal(j, NULL, f->medium[t].write_ns);
        ctl_json_close(j, ']');
    }
    ctl_json_close(j, '}');
}

static void json_site(struct ctl_json *j, const struct explained *e, unsigned i)
{
    const struct plan_site *s = &e->site[i];
    const struct plan_tier *p = &e->plan.place[i];
    ctl_json_open(j, NULL, '{');
    ctl_json_text(j, "name", explain_name(e, i));
    ctl_json_number(j, "rank", p->rank + 1u);
    ctl_json_number(j, "live_bytes", s->bytes);
    ctl_json_number(j, "block_bytes", s->block);
    ctl_json_number(j, "reads", (uint64_t)s->reads);
    ctl_json_number(j, "writes", (uint64_t)s->writes);
    json_decimal(j, "saves_ns", p->saves_ns);
    json_decimal(j, "saves_ns_per_byte", p->saves_ns / (double)HY_MAX(s->bytes, (uint64_t)1));
    ctl_json_text(j, "tier", e->counted || s->fixed ? hy_tier_name(p->tier) : NULL);
    ctl_json_number(j, "dram_bytes", p->dram_bytes);
    ctl_json_text(j, "parts", !s->parts ? NULL : s->heat ? "hot first" : "alike");
    ctl_json_text(j, "why", explain_why(e, i));
    ctl_json_close(j, '}');
}

void explain_json(const struct explained *e)
{
    const struct profile *p = &e->profile;
    struct ctl_json j = {.to = stdout};
    ctl_json_open(&j, NULL, '{');
    ctl_json_text(&j, "file", e->file);
    ctl_json_text(&j, "exe", p->exe[0] ? p->exe : NULL);
    ctl_json_text(&j, "class", hy_class_name(p->cls));
    ctl_json_text(&j, "write_intensive",
                  p->write_intensive < 0 ? NULL
                  : p->write_intensive   ? "yes"
                                         : "no");
    ctl_json_text(&j, "machine", e->machine.figures.name);
    json_latencies(&j, &e->machine.figures);
    ctl_json_text(&j, "machine_found", e->machine.said);
    ctl_json_number(&j, "footprint", p->footprint);
    ctl_json_number(&j, "dram", e->share);
    ctl_json_number(&j, "dram_planned", e->plan.dram_bytes);
    ctl_json_bool(&j, "counted", e->counted);
    ctl_json_text(&j, "accesses_by", p->source.accesses[0] ? p->source.accesses : NULL);
    ctl_json_number(&j, "samples", p->source.samples);
    ctl_json_bool(&j, "exact", e->plan.exact);
    json_decimal(&j, "recorded_slowdown", p->slowdown);
    json_decimal(&j, "slowdown_pm", e->slowdown_pm);
    json_decimal(&j, "slowdown_plan", e->slowdown_plan);
    json_decimal(&j, "read_ns", e->plan.read_ns);
    json_decimal(&j, "write_ns", e->plan.write_ns);
    ctl_json_number(&j, "threads_dram", p->threads[HY_DRAM]);
    ctl_json_number(&j, "threads_pm", p->threads[HY_PM]);
    ctl_json_open(&j, "phases", '[');
    for (unsigned i = 0; i < p->n_phases; i++) {
        ctl_json_open(&j, NULL, '{');
        ctl_json_number(&j, "start_ms", p->phases[i].start_ms);
        ctl_json_text(&j, "class", hy_class_name(p->phases[i].cls));
        json_decimal(&j, "slowdown", p->phases[i].slowdown);
        ctl_json_close(&j, '}');
    }
    ctl_json_close(&j, ']');
    ctl_json_open(&j, "behaviours", '[');
    for (unsigned i = 0; i < p->n_behaviours; i++) {
        const struct profile_behaviour *b = &p->behaviours[i];
        ctl_json_open(&j, NULL, '{');
        json_decimal(&j, "milliseconds", b->ms);
        ctl_json_number(&j, "reads", b->reads);
        ctl_json_number(&j, "writes", b->writes);
        json_decimal(&j, "slowdown", b->slowdown);
        ctl_json_close(&j, '}');
    }
    ctl_json_close(&j, ']');
    ctl_json_open(&j, "sites", '[');
    for (unsigned k = 0; k < e->n_sites; k++)
        json_site(&j, e, e->shown[k]);
    ctl_json_close(&j, ']');
    ctl_json_open(&j, "notes", '[');
    for (unsigned i = 0; i < e->n_notes; i++)
        ctl_json_text(&j, NULL, e->note[i]);
    ctl_json_close(&j, ']');
    ctl_json_close(&j, '}');
}
