/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace_lines.h"

#include <inttypes.h>
#include <string.h>

#include "classify/figures.h"
#include "config.h"
#include "report/fields.h"
#include "settings/settings.h"
#include "sys/os.h"

#define MAX_RUNS 64u /* pieces of the address space that a line tells apart */

static void number(struct trace_text *t, const char *name, uint64_t v)
{
    textbuf_add(&t->text, ", \"%s\": %" PRIu64, name, v);
}

static void text(struct trace_text *t, const char *name, const char *value)
{
    textbuf_add(&t->text, ", \"%s\": ", name);
    textbuf_json(&t->text, value);
}

static void pair(struct trace_text *t, const char *name, const uint64_t v[HY_TIERS])
{
    textbuf_add(&t->text, ", \"%s\": [%" PRIu64 ", %" PRIu64 "]", name, v[HY_DRAM], v[HY_PM]);
}

static void trace_settings(struct trace_text *t)
{
    static const char *const from[] = {"default", "profile", "environment"};
    char value[HY_PATH_MAX];

    for (int id = 0; id < OPT_COUNT; id++) {
        options_format(&hy_config.set, (enum hy_opt_id)id, value, sizeof(value));
        trace_open(t, TRACE_OTHER, "setting");
        text(t, "name", options_info((enum hy_opt_id)id)->env);
        text(t, "value", value);
        text(t, "from", from[hy_config.set.source[id]]);
        trace_close(t);
    }
}

void trace_run(struct trace_text *t, uint64_t start_ns, bool virtual_clock)
{
    char exe[256];

    if (os_program_path(exe, sizeof(exe)) != 0)
        exe[0] = '\0';
    trace_open(t, TRACE_OTHER, "run");
    number(t, "version", TRACE_VERSION);
    text(t, "libhybrid", HY_VERSION);
    number(t, "pid", (uint64_t)os_pid());
    text(t, "exe", exe);
    text(t, "pm", hy_machine.why);
    text(t, "clock", virtual_clock ? "virtual" : "monotonic");
    number(t, "start_ns", start_ns);
    pair(t, "capacity", (const uint64_t[]){hy_machine.dram_bytes, hy_machine.pm_bytes});
    text(t, "profile", hy_config.have_profile ? hy_config.profile_file : "");
    trace_close(t);
    trace_settings(t);
}

void trace_counters(struct trace_text *t, const struct classify_view *v)
{
    trace_open(t, TRACE_OTHER, "counters");
    text(t, "source", v->counters.what);
    text(t, "why", v->counters.why);
    text(t, "machine", v->machine);
    text(t, "figures", figures_here_said());
    trace_close(t);
}

void trace_migration(struct trace_text *t, const struct migrate_view *v)
{
    static const char *const state[] = {"idle", "on", "off"};

    trace_open(t, TRACE_OTHER, "migration");
    text(t, "state", state[v->state]);
    text(t, "why", v->why);
    text(t, "way", v->way ? v->way : "");
    text(t, "writes", v->writes ? v->writes : "");
    text(t, "reads", v->reads ? v->reads : "");
    trace_close(t);
}

void trace_warning(struct trace_text *t, uint64_t ns, const char *message)
{
    trace_open(t, TRACE_OTHER, "warning");
    number(t, "ns", ns);
    text(t, "text", message);
    trace_close(t);
}

static void trace_tally(struct trace_text *t, const struct tally *a)
{
    static const char *const name[] = {
#define WINDOW_X(field, text_, what) text_,
        WINDOW_FIELDS(WINDOW_X)
#undef WINDOW_X
    };

    textbuf_add(&t->text, ", \"predicted_ns\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]",
                (uint64_t)a->dram_ns, (uint64_t)a->placed_ns, (uint64_t)a->pm_ns);
    textbuf_add(&t->text, ", \"sums\": {\"windows\": %" PRIu64, a->windows);
    for (int f = 0; f < WINDOW_FIELD_COUNT; f++)
        if (tally_adds_up((enum window_field)f) && (a->have >> f & 1))
            number(t, name[f], a->sum[f]);
    textbuf_add(&t->text, "}");
}

void trace_sample(struct trace_text *t, uint64_t ns, uint64_t cost_ns, const struct observed *o)
{
    const struct classification *c = &o->classify.found;

    trace_open(t, TRACE_TICK, "sample");
    number(t, "ns", ns);
    number(t, "trace_ns", cost_ns);
    fields_samples(&t->text, o);
    if (o->classify.counters.what[0]) {
        textbuf_add(&t->text, ", \"slowdown\": [%u, %u, %u]", hy_milli(c->slowdown),
                    hy_milli(c->latency_slowdown), hy_milli(c->bandwidth_slowdown));
        trace_tally(t, &o->classify.tally);
    }
    trace_close(t);
}

/* One character for each bin: 0 to f, a share of `whole`; '.' where nothing was looked at. */
static void shares(struct trace_text *t, const char *name, const struct sampler_bin *bins,
                   unsigned n, size_t offset, uint32_t whole)
{
    static const char digit[] = "0123456789abcdef";
    char row[TRACE_BINS + 1];

    for (unsigned i = 0; i < n; i++) {
        uint64_t v = *(const uint32_t *)((const char *)&bins[i] + offset);
        uint64_t most = (uint64_t)bins[i].looked * whole;
        row[i] = most == 0 ? '.' : digit[HY_MIN((v * 15 + most / 2) / most, 15u)];
    }
    row[n] = '\0';
    textbuf_add(&t->text, ", \"%s\": \"%s\"", name, row);
}

/* [bin, base, pages of each bin] where a bin does not begin where the one before ended. */
static void places(struct trace_text *t, const struct sampler_bin *bins, unsigned n)
{
    unsigned runs = 0;

    textbuf_add(&t->text, ", \"bins\": %u, \"at\": [", n);
    for (unsigned i = 0; i < n && runs < MAX_RUNS; i++) {
        bool follows = i > 0 && bins[i].pages == bins[i - 1].pages &&
                       bins[i].base == bins[i - 1].base + bins[i - 1].pages * HY_PAGE;
        if (!follows)
            textbuf_add(&t->text, "%s[%u, %" PRIuPTR ", %" PRIu64 "]", runs++ ? ", " : "", i,
                        bins[i].base, bins[i].pages);
    }
    textbuf_add(&t->text, "]");
}

void trace_pass(struct trace_text *t, uint64_t ns, const struct migrate_pass *p,
                const struct sampler_bin *bins, unsigned n)
{
    trace_open(t, TRACE_PASS, "pass");
    number(t, "ns", ns);
    number(t, "number", p->number);
    number(t, "interval_ns", p->interval_ns);
    pair(t, "on", p->on);
    for (int tier = 0; tier < HY_TIERS; tier++) {
        textbuf_add(&t->text, ", \"%s\": [", tier == HY_DRAM ? "bands_dram" : "bands_pm");
        for (int b = 0; b < BANDS; b++)
            textbuf_add(&t->text, "%s%" PRIu64, b ? ", " : "", p->pages[tier][b]);
        textbuf_add(&t->text, "]");
    }
    number(t, "tracked", p->tracked_pages);
    number(t, "written", p->written_pages);
    textbuf_add(&t->text, ", \"predicted\": [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]",
                p->stats.predicted[UN_WD], p->stats.predicted[WD_FREQ_L],
                p->stats.predicted[WD_FREQ_H]);
    number(t, "observed", p->stats.observed);
    number(t, "right", p->stats.right);
    number(t, "wanted", p->wanted_pages);
    number(t, "paused", p->paused);
    n = HY_MIN(n, TRACE_BINS);
    places(t, bins, n);
    shares(t, "heat", bins, n, offsetof(struct sampler_bin, heat), HEAT_MAX);
    shares(t, "writes", bins, n, offsetof(struct sampler_bin, writes), PREDICT_WINDOW);
    shares(t, "will_write", bins, n, offsetof(struct sampler_bin, predicted), 1);
    shares(t, "on_pm", bins, n, offsetof(struct sampler_bin, on_pm), 1);
    trace_close(t);
}

void trace_end(struct trace_text *t, uint64_t ns)
{
    trace_open(t, TRACE_OTHER, "end");
    number(t, "ns", ns);
    trace_close(t);
}
