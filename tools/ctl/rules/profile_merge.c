/* SPDX-License-Identifier: BSD-2-Clause
 * See profile_merge.h. While runs are added sites hold sums; the end makes them means. */
#include "tools/ctl/rules/profile_merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A class that nobody can vouch for still weighs a little: something is better than nothing. */
#define LEAST_WEIGHT 1e-6

struct teller {
    hy_diag_fn diag;
    void *ctx;
    const char *name;
};

static void tell(const struct teller *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void tell(const struct teller *t, const char *fmt, ...)
{
    char name[TEXT_QUOTE_CAP], what[512], message[TEXT_QUOTE_CAP + 600];
    va_list ap;

    if (!t->diag)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    text_quote(t->name, strlen(t->name), name, sizeof(name));
    (void)snprintf(message, sizeof(message), "%s: %s", name, what);
    t->diag(t->ctx, message);
}

void profile_merge_begin(struct profile_merge *m, struct profile *into, unsigned sites_cap)
{
    struct profile_site *sites = into->sites;

    memset(m, 0, sizeof(*m));
    memset(into, 0, sizeof(*into));
    into->sites = sites;
    into->write_intensive = -1;
    into->exposure = into->foreseen = -1;
    m->into = into;
    m->sites_cap = sites_cap;
}

static void take_text(const struct teller *t, const char *key, char *to, size_t cap,
                      const char *from)
{
    if (from[0] == '\0' || strcmp(to, from) == 0)
        return;
    if (to[0] == '\0')
        (void)snprintf(to, cap, "%s", from);
    else
        tell(t, "%s is %s here and %s before; the first counts", key, from, to);
}

static uint32_t runs_of(const struct profile *p)
{
    return HY_MAX(p->source.runs, 1u);
}

static double weight_of(const struct profile *p)
{
    double c = p->source.confidence > 0 ? p->source.confidence : 0.1;

    return HY_MAX(c * (double)HY_MAX(p->source.ms, (uint64_t)1), LEAST_WEIGHT);
}

static void add_class(struct profile_merge *m, const struct profile *p, const struct teller *t,
                      double w)
{
    struct profile *into = m->into;

    m->weight += w;
    m->confidence_sum += w * p->source.confidence;
    if (p->cls != HY_CLASS_UNKNOWN) {
        if (into->cls != HY_CLASS_UNKNOWN && into->cls != p->cls)
            tell(t, "class is %s here and %s before; the one with more weight counts",
                 hy_class_name(p->cls), hy_class_name(into->cls));
        if (into->cls == HY_CLASS_UNKNOWN)
            into->cls = p->cls;
        m->class_weight[p->cls] += w;
    }
    if (p->slowdown > 0) {
        m->slowdown_weight += w;
        m->slowdown_sum += w * p->slowdown;
    }
    if (p->exposure >= 0 && p->foreseen >= 0) {
        m->work_weight += w;
        m->exposure += w * p->exposure;
        m->foreseen += w * p->foreseen;
        m->busy_threads += w * p->busy_threads;
    }
    if (p->write_intensive >= 0)
        m->writes_weight[p->write_intensive != 0] += w;
}

/* Sums over the runs; profile_merge_end divides. */
static void add_source(struct profile_merge *m, const struct profile *p, const struct teller *t)
{
    struct profile_source *to = &m->into->source;
    const struct profile_source *from = &p->source;
    uint32_t runs = runs_of(p);

    take_text(t, "[machine] figures", to->figures, sizeof(to->figures), from->figures);
    take_text(t, "[recorded] method", to->method, sizeof(to->method), from->method);
    if (to->accesses[0] == '\0')
        memcpy(to->accesses, from->accesses, sizeof(to->accesses));
    if (to->libhybrid[0] == '\0')
        memcpy(to->libhybrid, from->libhybrid, sizeof(to->libhybrid));
    to->dram_bytes = to->dram_bytes ? to->dram_bytes : from->dram_bytes;
    to->pm_bytes = to->pm_bytes ? to->pm_bytes : from->pm_bytes;
    to->cpus = to->cpus ? to->cpus : from->cpus;
    to->windows += from->windows;
    to->ms += from->ms;
    to->reads += from->reads * runs;
    to->writes += from->writes * runs;
    to->samples += from->samples;
    if (from->samples > 0) {
        to->period = from->period;
        m->known_weight += (double)from->samples;
        m->known_sum += (double)from->samples * from->known;
        m->mapped_sum += (double)from->samples * from->mapped;
    }
    m->runs += runs;
}

static void add_people(struct profile *into, const struct profile *p)
{
    for (int t = 0; t < HY_TIERS; t++)
        into->threads[t] = into->threads[t] ? into->threads[t] : p->threads[t];
    into->threads_seen = HY_MAX(into->threads_seen, p->threads_seen);
    into->footprint = HY_MAX(into->footprint, p->footprint);
    for (unsigned i = 0; i < p->n_options; i++) {
        unsigned k = 0;

        while (k < into->n_options && into->option[k].id != p->option[i].id)
            k++;
        if (k == into->n_options)
            into->option[into->n_options++] = p->option[i];
    }
}

static bool same_place(const struct profile_site *a, const struct profile_site *b)
{
    return a->n_frames == b->n_frames &&
           memcmp(a->frames, b->frames, a->n_frames * sizeof(a->frames[0])) == 0;
}

static struct profile_site *same_site(struct profile *p, const struct profile_site *s)
{
    for (unsigned i = 0; i < p->n_sites; i++)
        if (p->sites[i].nth == s->nth && same_place(&p->sites[i], s))
            return &p->sites[i];
    return NULL;
}

/* What cannot be averaged is of the run that says most: the phases, and the behaviours with what
 * sites say of them, which is about parts of their lines. */
static void add_course(struct profile_merge *m, const struct profile *p, double w)
{
    struct profile *into = m->into;

    if (w <= m->best_weight || p->n_phases + p->n_behaviours == 0)
        return;
    m->best_weight = w;
    into->n_phases = p->n_phases;
    memcpy(into->phases, p->phases, sizeof(into->phases));
    into->n_behaviours = p->n_behaviours;
    memcpy(into->behaviours, p->behaviours, sizeof(into->behaviours));
    for (unsigned i = 0; i < into->n_sites; i++)
        into->sites[i].n_reads_in = into->sites[i].n_writes_in = 0;
    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *s = &p->sites[i];
        struct profile_site *to = same_site(into, s);

        if (!to)
            continue;
        to->n_reads_in = s->n_reads_in;
        to->n_writes_in = s->n_writes_in;
        memcpy(to->reads_in, s->reads_in, sizeof(to->reads_in));
        memcpy(to->writes_in, s->writes_in, sizeof(to->writes_in));
    }
}

static bool name_taken(const struct profile *p, const char *name)
{
    for (unsigned i = 0; i < p->n_sites; i++)
        if (strcmp(p->sites[i].name, name) == 0)
            return true;
    return false;
}

static uint64_t least_known(uint64_t a, uint64_t b)
{
    return a == 0 ? b : b == 0 ? a : HY_MIN(a, b);
}

/* As long as the longer of two: 0 is the end of the run. */
static void add_times(struct profile_site *to, const struct profile_site *s)
{
    to->from = HY_MIN(to->from, s->from);
    to->until = to->until == 0 || s->until == 0 ? 0 : HY_MAX(to->until, s->until);
}

/* By their lines, those that were there before and those that are added. */
static void add_heat(struct profile_site *to, const struct profile_site *s, uint32_t runs)
{
    double lines[2] = {(double)to->reads + (double)to->writes,
                       ((double)s->reads + (double)s->writes) * runs};
    const struct profile_site *of[2] = {to, s};
    double sum[PROFILE_BINS] = {0};

    if ((!to->has_heat && !s->has_heat) || lines[0] + lines[1] <= 0)
        return;
    for (int k = 0; k < 2; k++) {
        double all = 0;

        for (unsigned b = 0; b < PROFILE_BINS; b++)
            all += of[k]->has_heat ? of[k]->heat[b] : 1;
        for (unsigned b = 0; b < PROFILE_BINS; b++)
            sum[b] += lines[k] * (of[k]->has_heat ? of[k]->heat[b] : 1) / all;
    }
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        to->heat[b] = (uint16_t)(sum[b] / (lines[0] + lines[1]) * PROFILE_HEAT_MOST + 0.5);
    to->has_heat = true;
}

static void add_site(struct profile_merge *m, const struct profile_site *s, uint32_t runs)
{
    struct profile_site *to = same_site(m->into, s);

    if (!to) {
        if (m->into->n_sites == m->sites_cap) {
            m->lost++;
            return;
        }
        bool taken = name_taken(m->into, s->name);
        to = &m->into->sites[m->into->n_sites++];
        *to = *s;
        if (taken)
            to->name[0] = '\0'; /* the caller numbers it */
        to->count = to->bytes = to->reads = to->writes = 0;
        to->n_reads_in = to->n_writes_in = 0; /* add_course */
    } else if (!to->has_tier && s->has_tier) {
        to->has_tier = true;
        to->tier = s->tier;
    }
    add_heat(to, s, runs);
    to->count += s->count * runs;
    to->bytes += s->bytes * runs;
    to->reads += s->reads * runs;
    to->writes += s->writes * runs;
    to->live_bytes = HY_MAX(to->live_bytes, s->live_bytes);
    add_times(to, s);
    to->max_size = HY_MAX(to->max_size, s->max_size);
    to->min_size = least_known(to->min_size, s->min_size);
}

static void add_task(struct profile *into, const struct profile_task *t, uint32_t runs)
{
    unsigned i = 0;
    while (i < into->n_tasks && (memcmp(&into->tasks[i].code, &t->code, sizeof(t->code)) != 0 ||
                                 into->tasks[i].needs != t->needs ||
                                 memcmp(into->tasks[i].bytes, t->bytes, sizeof(t->bytes)) != 0))
        i++;
    if (i == PROFILE_MAX_TASKS)
        return;
    struct profile_task *to = &into->tasks[i];
    if (i == into->n_tasks) {
        *to = *t;
        to->count = 0;
        into->n_tasks++;
    }
    for (int tier = 0; tier < HY_TIERS; tier++)
        if (t->ns[tier] > 0 && (to->ns[tier] == 0 || t->count * runs > to->count))
            to->ns[tier] = t->ns[tier];
    to->count += t->count * runs;
}

int profile_merge_add(struct profile_merge *m, const struct profile *p, const char *name,
                      hy_diag_fn diag, void *ctx)
{
    const struct teller t = {diag, ctx, name};
    struct profile *into = m->into;
    bool first = m->runs == 0;

    if (into->exe[0] && p->exe[0] && strcmp(into->exe, p->exe) != 0) {
        tell(&t, "it is of %s, the others are of %s; it is left out", p->exe, into->exe);
        return -EXDEV;
    }
    if (!first && into->build_id_len && p->build_id_len &&
        (into->build_id_len != p->build_id_len ||
         memcmp(into->build_id, p->build_id, sizeof(p->build_id)) != 0))
        tell(&t, "it was recorded with another build of the program; sites of both are kept");
    if (into->build_id_len == 0) {
        into->build_id_len = p->build_id_len;
        memcpy(into->build_id, p->build_id, sizeof(into->build_id));
    }
    take_text(&t, "exe", into->exe, sizeof(into->exe), p->exe);
    take_text(&t, "path", into->path, sizeof(into->path), p->path);
    take_text(&t, "args", into->args, sizeof(into->args), p->args);
    add_class(m, p, &t, weight_of(p));
    add_source(m, p, &t);
    add_people(into, p);
    if (p->n_sites > 0 || p->source.samples > 0)
        m->site_runs += runs_of(p);
    for (unsigned i = 0; i < p->n_sites; i++)
        add_site(m, &p->sites[i], runs_of(p));
    add_course(m, p, weight_of(p));
    for (unsigned i = 0; i < p->n_tasks; i++)
        add_task(into, &p->tasks[i], runs_of(p));
    return 0;
}

static uint64_t mean(uint64_t sum, uint32_t runs)
{
    return runs > 1 ? (sum + runs / 2) / runs : sum;
}

void profile_merge_end(struct profile_merge *m)
{
    struct profile *p = m->into;
    for (int c = 0; c < HY_CLASS_MAX; c++)
        if (m->class_weight[c] > m->class_weight[p->cls])
            p->cls = (enum hy_class)c;
    if (m->slowdown_weight > 0)
        p->slowdown = m->slowdown_sum / m->slowdown_weight;
    if (m->work_weight > 0) {
        p->exposure = m->exposure / m->work_weight;
        p->foreseen = m->foreseen / m->work_weight;
        p->busy_threads = m->busy_threads / m->work_weight;
    }
    if (m->writes_weight[0] + m->writes_weight[1] > 0)
        p->write_intensive = m->writes_weight[1] > m->writes_weight[0];
    p->source.confidence = m->weight > 0 ? m->confidence_sum / m->weight : 0;
    p->source.known = m->known_weight > 0 ? m->known_sum / m->known_weight : 0;
    p->source.mapped = m->known_weight > 0 ? m->mapped_sum / m->known_weight : 0;
    p->source.reads = mean(p->source.reads, m->runs);
    p->source.writes = mean(p->source.writes, m->runs);
    p->source.runs = m->runs;
    for (unsigned i = 0; i < p->n_tasks; i++)
        p->tasks[i].count = mean(p->tasks[i].count, m->runs);
    for (unsigned i = 0; i < p->n_sites; i++) {
        struct profile_site *s = &p->sites[i];

        s->count = mean(s->count, m->site_runs);
        s->bytes = mean(s->bytes, m->site_runs);
        s->reads = mean(s->reads, m->site_runs);
        s->writes = mean(s->writes, m->site_runs);
    }
}

void profile_fold_alike(struct profile *p)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < p->n_sites; i++)
        if (p->sites[i].reads > 0 || p->sites[i].writes > 0 || p->sites[i].has_tier)
            return;
    for (unsigned i = 0; i < p->n_sites; i++) {
        struct profile_site s = p->sites[i], *to = NULL;

        for (unsigned k = 0; k < kept && !to; k++)
            to = same_place(&p->sites[k], &s) ? &p->sites[k] : NULL;
        if (!to) {
            s.nth = 0;
            p->sites[kept++] = s;
            continue;
        }
        to->count += s.count;
        to->bytes += s.bytes;
        to->live_bytes += s.live_bytes;
        add_times(to, &s);
        to->max_size = HY_MAX(to->max_size, s.max_size);
        to->min_size = least_known(to->min_size, s.min_size);
    }
    p->n_sites = kept;
    for (unsigned i = 0; i < kept && p->footprint > 0; i++)
        p->sites[i].live_bytes = HY_MIN(p->sites[i].live_bytes, p->footprint);
}
