/* SPDX-License-Identifier: BSD-2-Clause */
#include "classify/rules/classes.h"

#include <errno.h>

/* Windows in a row that must agree on another class, and that may be against the present
 * one without agreeing. A window that holds the change, and these, are the three in which
 * a new phase must be seen. */
#define AGREE   2
#define AGAINST 3
/* Nearer than this to a border the present class stays. */
#define MARGIN 0.05
/* New windows weigh this much in what is told of a phase. */
#define WEIGHT 0.3
/* Misses of which less of the latency is waited for are independent of each other: four or
 * more overlap. Of dependent ones all is waited for. Programs that follow pointers and also
 * copy what they find lie above it. */
#define INDEPENDENT 0.4
/* PM that is used for this share of the time bounds a program: more threads bring nothing. */
#define FILLED 0.9
/* Less of the time than this: the process sleeps. */
#define ASLEEP        0.01
#define MOST_SLOWDOWN 1000.0
/* Data of this size do not leave the last-level cache of a server's socket for long. */
#define CACHED_BYTES (4.0 * HY_MIB)

/* What one window says. */
struct verdict {
    enum hy_class cls;
    double confidence;
    double ref_slowdown; /* of the run with rules.threads */
    double bound;        /* 1 and more: by bandwidth; less: by latency */
    double ref_write_share;
    struct classification seen;
};

struct class_rules class_rules_default(void)
{
    return (struct class_rules){.slowdown = 1.5, .write_share = 0.25, .threads = 8};
}

void classifier_init(struct classifier *c, const struct class_rules *rules)
{
    *c = (struct classifier){.rules = *rules};
}

static double ratio(double a, double b)
{
    return b > 0 ? hy_clamp(a / b, 1 / MOST_SLOWDOWN, MOST_SLOWDOWN) : 1;
}

/* Share of PM's write bandwidth that the work takes in `ns`. */
static double write_share(const struct machine_figures *f, const struct work *k, double ns)
{
    struct work only = *k;

    only.compute_ns = only.reads = 0;
    return ns > 0 ? hy_clamp(work_time(f, &only, 1, 1, k->threads).service_ns / ns, 0, 1) : 0;
}

/* What is known of the stall, whether all events counted, and whether the model finds the
 * time that the window took: others that load the media, or figures of another machine,
 * make it differ. */
static double confidence_of(const struct machine_figures *f, const struct window *w,
                            const struct work *k, enum stall_known known)
{
    static const double by_source[] = {1.0, 0.9, 0.7, 0.5};
    double model = work_time(f, k, k->pm_reads, k->pm_writes, k->threads).total_ns;
    double off = ratio(window_get(w, WINDOW_elapsed_ns), model);
    double c = by_source[known];

    if (off < 1)
        off = 1 / off;
    c *= off < 1.15 ? 1 : hy_clamp(1.15 / off, 0.4, 1);
    if (window_has(w, WINDOW_counted_pct))
        c *= hy_clamp(window_get(w, WINDOW_counted_pct) / 100, 0.3, 1);
    if (!window_has(w, WINDOW_writes))
        c *= 0.8;
    if (!window_has(w, WINDOW_reads_pm) && !window_has(w, WINDOW_pm_bytes))
        c *= 0.8;
    return c;
}

/* A decision far from the border is a safer one. */
static double clearness(double value, double border)
{
    double off = value > border ? value / border : border / value;

    return hy_clamp(0.5 + (off - 1), 0.5, 1);
}

static void effective_bandwidth(const struct machine_figures *f, const struct work *k,
                                double elapsed, double ret[HY_TIERS])
{
    const double reads[HY_TIERS] = {k->reads * (1 - k->pm_reads), k->reads * k->pm_reads};
    const double writes[HY_TIERS] = {k->writes * (1 - k->pm_writes), k->writes * k->pm_writes};

    for (int t = 0; t < HY_TIERS; t++)
        ret[t] = (reads[t] * f->medium[t].read_ns + writes[t] * f->medium[t].write_ns) / elapsed;
}

static enum hy_class name_class(const struct class_rules *r, enum hy_class present, double slowdown,
                                double bound)
{
    double border = r->slowdown, equal = 1;

    if (present == HY_CLASS_CPU)
        border *= 1 + MARGIN;
    else if (present != HY_CLASS_UNKNOWN)
        border *= 1 - MARGIN;
    if (present == HY_CLASS_BANDWIDTH)
        equal = 1 / (1 + 2 * MARGIN);
    else if (present == HY_CLASS_LATENCY)
        equal = 1 + 2 * MARGIN;
    if (slowdown < border)
        return HY_CLASS_CPU;
    return bound >= equal ? HY_CLASS_BANDWIDTH : HY_CLASS_LATENCY;
}

static void judge(const struct classifier *c, const struct machine_figures *f,
                  const struct window *w, const struct work *k, enum stall_known known,
                  struct verdict *v)
{
    const struct class_rules *r = &c->rules;
    double threads = HY_MAX(k->threads, r->threads);
    struct work_time dram = work_time(f, k, 0, 0, k->threads);
    struct work_time pm = work_time(f, k, 1, 1, k->threads);
    struct work_time ref_dram = work_time(f, k, 0, 0, threads);
    struct work_time ref_pm = work_time(f, k, 1, 1, threads);

    v->ref_slowdown = ratio(ref_pm.total_ns, ref_dram.total_ns);
    v->bound = HY_MAX(ratio(ref_pm.service_ns, FILLED * ref_pm.total_ns),
                      ratio(INDEPENDENT, HY_MAX(work_chained(k), 0.01)));
    v->ref_write_share = write_share(f, k, ref_pm.total_ns);
    v->cls = name_class(r, c->now.cls, v->ref_slowdown, v->bound);
    v->confidence = confidence_of(f, w, k, known) * clearness(v->ref_slowdown, r->slowdown);
    if (v->cls != HY_CLASS_CPU)
        v->confidence *= clearness(v->bound, 1);
    v->seen.slowdown = ratio(pm.total_ns, dram.total_ns);
    v->seen.latency_slowdown = ratio(pm.threads_ns, dram.threads_ns);
    v->seen.bandwidth_slowdown = ratio(HY_MAX(pm.service_ns, dram.total_ns), dram.total_ns);
    v->seen.write_share = write_share(f, k, pm.total_ns);
    effective_bandwidth(f, k, window_get(w, WINDOW_elapsed_ns), v->seen.ebw);
}

/* Without counts: a process that waits, or whose data stay in the cache, is not limited by
 * memory. Of any other nothing is known. */
static void hint(struct classifier *c, const struct window *w)
{
    double elapsed = window_get(w, WINDOW_elapsed_ns), busy = window_get(w, WINDOW_busy_ns);
    double bytes = window_get(w, WINDOW_dram_bytes) + window_get(w, WINDOW_pm_bytes);
    bool sleeps = window_has(w, WINDOW_busy_ns) && elapsed > 0 && busy < 0.1 * elapsed;
    bool small = window_has(w, WINDOW_dram_bytes) && bytes < CACHED_BYTES;

    if (c->now.windows > 0 && !c->now.weak)
        return; /* there were counts: what they said is better */
    c->now.weak = true;
    c->now.windows += c->now.windows < UINT32_MAX;
    c->now.cls = sleeps || small ? HY_CLASS_CPU : HY_CLASS_UNKNOWN;
    c->now.confidence = sleeps || small ? 0.2 : 0;
}

static double blend(double old, double new, double weight)
{
    return old + (new - old) * weight;
}

/* The window belongs to the present phase. */
static void adopt(struct classification *now, const struct verdict *v, const struct class_rules *r)
{
    double weight = HY_MAX(WEIGHT, 1.0 / (now->windows + 1.0));
    double border = r->write_share * (now->write_intensive ? 1 - MARGIN : 1 + MARGIN);

    now->windows += now->windows < UINT32_MAX;
    now->slowdown = blend(now->slowdown, v->seen.slowdown, weight);
    now->latency_slowdown = blend(now->latency_slowdown, v->seen.latency_slowdown, weight);
    now->bandwidth_slowdown = blend(now->bandwidth_slowdown, v->seen.bandwidth_slowdown, weight);
    now->write_share = blend(now->write_share, v->seen.write_share, weight);
    for (int t = 0; t < HY_TIERS; t++)
        now->ebw[t] = blend(now->ebw[t], v->seen.ebw[t], weight);
    now->write_intensive = v->ref_write_share >= border;
    /* One window may be chance, ten are not. */
    now->confidence =
        blend(now->confidence, v->confidence * (1 - 0.5 / now->windows), HY_MAX(weight, 0.5));
}

static void begin_phase(struct classifier *c, enum hy_class cls)
{
    uint32_t phases = c->now.phases + (c->now.cls != HY_CLASS_UNKNOWN && !c->now.weak);

    c->now = (struct classification){.cls = cls, .phases = phases};
    c->against = c->agree_other = 0;
}

void classifier_feed(struct classifier *c, const struct machine_figures *f, const struct window *w)
{
    struct verdict v = {.cls = HY_CLASS_UNKNOWN};
    struct work k;
    enum stall_known known;
    int e = work_of_window(f, w, &k, &known);

    if (e == -ENODATA)
        hint(c, w);
    if (e != 0 || k.threads < ASLEEP)
        return;
    judge(c, f, w, &k, known, &v);
    if (c->now.cls == HY_CLASS_UNKNOWN || c->now.weak) {
        begin_phase(c, v.cls);
    } else if (v.cls != c->now.cls) {
        c->against++;
        c->agree_other = v.cls == c->other ? c->agree_other + 1 : 1;
        c->other = v.cls;
        c->now.confidence *= 0.8;
        if (c->agree_other < AGREE && c->against < AGAINST)
            return;
        begin_phase(c, v.cls);
    }
    c->against = c->agree_other = 0;
    adopt(&c->now, &v, &c->rules);
}
