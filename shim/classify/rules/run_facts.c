/* SPDX-License-Identifier: BSD-2-Clause */
#include "classify/rules/run_facts.h"

#include <string.h>

#define NS_PER_MS 1e6

static void note_most(struct window *most, const struct window *w)
{
    for (int f = 0; f < WINDOW_FIELD_COUNT; f++)
        if (window_has(w, (enum window_field)f) && !tally_adds_up((enum window_field)f))
            window_set(most, (enum window_field)f, HY_MAX(most->value[f], w->value[f]));
}

void run_sum_add(struct run_sum *s, const struct machine_figures *f, const struct window *w)
{
    tally_add(&s->all, f, w);
    note_most(&s->most, w);
}

void run_sum_merge(struct run_sum *s, const struct run_sum *more)
{
    tally_merge(&s->all, &more->all);
    note_most(&s->most, &more->most);
}

/* All windows as one. */
static struct window whole(const struct run_sum *s)
{
    struct window w = s->most;

    for (int f = 0; f < WINDOW_FIELD_COUNT; f++)
        if ((s->all.have >> f & 1) && tally_adds_up((enum window_field)f))
            window_set(&w, (enum window_field)f, s->all.sum[f]);
    return w;
}

static double slowdown(double pm_ns, double dram_ns)
{
    double s = dram_ns > 0 ? pm_ns / dram_ns : 0;

    return s > 0 ? HY_MIN(HY_MAX(s, 0.001), 1000.0) : 0;
}

int run_sum_get(const struct run_sum *s, const struct machine_figures *f,
                struct profile_behaviour *ret)
{
    struct window w = whole(s);
    enum stall_known known;
    struct work k;

    memset(ret, 0, sizeof(*ret));
    ret->ms = window_get(&w, WINDOW_elapsed_ns) / NS_PER_MS;
    ret->reads = (uint64_t)window_get(&w, WINDOW_reads);
    ret->writes = (uint64_t)window_get(&w, WINDOW_writes);
    int e = work_of_window(f, &w, &k, &known);
    if (e < 0)
        return e;
    ret->slowdown = slowdown(s->all.pm_ns, s->all.dram_ns);
    ret->exposure = k.exposure;
    ret->foreseen = k.foreseen;
    ret->busy_threads = k.threads;
    return 0;
}

/* The last phase gets its slowdown from what is counted of it so far. */
static void end_phase(struct run_facts *r)
{
    if (r->n_phases > 0)
        r->phases[r->n_phases - 1].slowdown = slowdown(r->phase.pm_ns, r->phase.dram_ns);
}

static void begin_phase(struct run_facts *r, const struct classification *now)
{
    struct profile_phase *p;

    end_phase(r);
    memset(&r->phase, 0, sizeof(r->phase));
    if (r->n_phases == PROFILE_MAX_PHASES) /* the last one begins anew */
        r->n_phases--;
    p = &r->phases[r->n_phases++];
    p->start_ms = r->n_phases == 1 ? 0
                                   : (uint64_t)((double)(r->run.all.sum[WINDOW_elapsed_ns] -
                                                         r->pending.value[WINDOW_elapsed_ns]) /
                                                NS_PER_MS);
    r->last_phase = now->phases;
}

void run_facts_add(struct run_facts *r, const struct machine_figures *f, const struct window *w,
                   const struct classification *now)
{
    double elapsed = window_get(w, WINDOW_elapsed_ns);

    if (!now->weak && now->cls != HY_CLASS_UNKNOWN) {
        if (r->n_phases == 0 || now->phases != r->last_phase)
            begin_phase(r, now);
        if (r->pending.have)
            tally_add(&r->phase, f, &r->pending);
        r->pending = *w;
        r->phases[r->n_phases - 1].cls = now->cls;
        r->judged_ns += elapsed;
        r->confidence_ns += elapsed * now->confidence;
    }
    run_sum_add(&r->run, f, w);
}

void run_facts_get(const struct run_facts *r, const struct machine_figures *f,
                   const struct class_rules *rules, struct profile *ret)
{
    struct profile_source *s = &ret->source;
    struct window w = whole(&r->run);
    struct profile_behaviour all;
    struct run_facts last = *r;
    struct classifier c;
    int e = run_sum_get(&r->run, f, &all);

    s->windows = r->run.all.windows;
    s->ms = (uint64_t)(all.ms + 0.5);
    s->reads = all.reads;
    s->writes = all.writes;
    if (r->judged_ns <= 0 || e < 0)
        return;
    classifier_init(&c, rules);
    classifier_feed(&c, f, &w);
    ret->cls = c.now.cls;
    ret->write_intensive = c.now.write_intensive;
    ret->slowdown = all.slowdown;
    ret->exposure = all.exposure;
    ret->foreseen = all.foreseen;
    ret->busy_threads = all.busy_threads;
    s->confidence = r->confidence_ns / r->judged_ns;
    tally_add(&last.phase, f, &last.pending);
    end_phase(&last);
    ret->n_phases = last.n_phases;
    memcpy(ret->phases, last.phases, sizeof(ret->phases));
}
