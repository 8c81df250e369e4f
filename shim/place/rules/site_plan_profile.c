/* SPDX-License-Identifier: BSD-2-Clause
 * What a plan is made from: the sites of a profile, and the work that it tells of. */
#include <errno.h>
#include <string.h>

#include "place/rules/site_plan.h"

/* Where a profile does not say how its misses overlap: misses one after the other for latency,
 * half of them streams for bandwidth. The threads of the study that the classes come from. */
#define EXPOSED_LATENCY   0.8
#define EXPOSED_BANDWIDTH 0.15
#define FORESEEN          0.5
#define THREADS           8
#define STEPS             60
/* What the sites do not explain comes in blocks of so much. */
#define REST_BLOCK ((uint64_t)64 << 10)
#define LINE       64

static double slowdown_with(const struct machine_figures *f, struct work *k, double compute_ns)
{
    k->compute_ns = compute_ns;
    return work_time(f, k, 1, 1, k->threads).total_ns / work_time(f, k, 0, 0, k->threads).total_ns;
}

/* Computing hides memory: so much of it that the slowdown comes out as it was found. */
static void find_compute(const struct machine_figures *f, double slowdown, struct work *k)
{
    double lo = 0, hi = work_time(f, k, 1, 1, k->threads).total_ns * k->threads * 1000;

    if (slowdown <= 0 || slowdown_with(f, k, 0) <= slowdown) {
        k->compute_ns = 0;
        return;
    }
    for (int i = 0; i < STEPS; i++) {
        double mid = (lo + hi) / 2;

        if (slowdown_with(f, k, mid) > slowdown)
            lo = mid;
        else
            hi = mid;
    }
    k->compute_ns = hi;
}

/* Of lines, the part in each behaviour: as the site tells, or as all lines are. */
static void find_parts(const struct profile *p, const uint64_t *list, bool writes,
                       float ret[PROFILE_BEHAVIOURS])
{
    double n[PROFILE_BEHAVIOURS], sum = 0;

    for (int told = list != NULL; told >= 0 && sum <= 0; told--)
        for (unsigned b = 0; b < p->n_behaviours; b++) {
            const struct profile_behaviour *in = &p->behaviours[b];

            n[b] = told ? (double)list[b] : writes ? (double)in->writes : (double)in->reads;
            sum += n[b];
        }
    for (unsigned b = 0; b < p->n_behaviours; b++)
        ret[b] = (float)(sum > 0 ? n[b] / sum : 1.0 / p->n_behaviours);
}

/* The work of all of a run; reads and writes are what its sites have. */
static struct work whole(const struct profile *p, double reads, double writes)
{
    struct work k = {.reads = HY_MAX(reads, (double)p->source.reads),
                     .writes = HY_MAX(writes, (double)p->source.writes),
                     .threads = THREADS,
                     .foreseen = FORESEEN,
                     .exposure = EXPOSED_BANDWIDTH};

    if (p->cls == HY_CLASS_LATENCY) {
        k.exposure = EXPOSED_LATENCY;
        k.foreseen = 0;
    }
    if (p->exposure >= 0)
        k.exposure = HY_MIN(p->exposure, 1);
    if (p->foreseen >= 0)
        k.foreseen = HY_MIN(p->foreseen, 1);
    if (p->busy_threads > 0)
        k.threads = p->busy_threads;
    return k;
}

/* One that is told of; what it does not say is as in the whole run, and its sites' lines are added
 * already. */
static struct work behaviour(const struct profile_behaviour *b, const struct work *all,
                             const struct work *sites)
{
    struct work k = *all;

    k.reads = HY_MAX((double)b->reads, sites->reads);
    k.writes = HY_MAX((double)b->writes, sites->writes);
    if (b->busy_threads > 0) { /* else nothing was judged */
        k.threads = b->busy_threads;
        k.exposure = b->exposure;
        k.foreseen = b->foreseen;
    }
    return k;
}

/* The parts of a site's lines in each behaviour. */
static void site_parts(const struct profile *p, const struct profile_site *s, struct plan_site *ret)
{
    find_parts(p, s->n_reads_in ? s->reads_in : NULL, false, ret->reads_in);
    find_parts(p, s->n_writes_in ? s->writes_in : NULL, true, ret->writes_in);
}

int site_plan_work(const struct profile *p, const struct machine_figures *f, struct plan_work *ret)
{
    struct work sites[PROFILE_BEHAVIOURS] = {0};
    double reads = 0, writes = 0;

    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *s = &p->sites[i];
        struct plan_site part;

        reads += (double)s->reads;
        writes += (double)s->writes;
        site_parts(p, s, &part);
        for (unsigned b = 0; b < p->n_behaviours; b++) {
            sites[b].reads += (double)s->reads * (double)part.reads_in[b];
            sites[b].writes += (double)s->writes * (double)part.writes_in[b];
        }
    }
    if (reads + writes <= 0)
        return -ENODATA;
    struct work all = whole(p, reads, writes);
    ret->n = p->n_behaviours > 1 ? p->n_behaviours : 1;
    ret->all = all;
    find_compute(f, p->slowdown, &ret->all);
    ret->in[0] = ret->all;
    for (unsigned b = 0; ret->n > 1 && b < ret->n; b++) {
        ret->in[b] = behaviour(&p->behaviours[b], &all, &sites[b]);
        find_compute(f, p->behaviours[b].slowdown, &ret->in[b]);
    }
    return 0;
}

static uint64_t key_of(const struct profile_site *s)
{
    uint64_t h = s->n_frames + ((uint64_t)s->nth << 8);

    for (unsigned i = 0; i < s->n_frames; i++) {
        for (unsigned b = 0; b < BUILD_ID_MAX; b++)
            h = (h ^ s->frames[i].build_id[b]) * 0x100000001b3u;
        h = (h ^ s->frames[i].offset) * 0x9e3779b97f4a7c15u;
    }
    return h;
}

static bool begins_with(const struct profile_site *s, const struct profile_site *part)
{
    if (part->n_frames > s->n_frames || (part->nth != 0 && part->nth != s->nth))
        return false;
    for (unsigned i = 0; i < part->n_frames; i++)
        if (s->frames[i].offset != part->frames[i].offset ||
            memcmp(s->frames[i].build_id, part->frames[i].build_id, BUILD_ID_MAX) != 0)
            return false;
    return true;
}

static void named_tier(const struct profile *p, const struct profile_site *s, struct plan_site *ret)
{
    unsigned best = 0;

    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *o = &p->sites[i];

        if (o->has_tier && o->n_frames > best && begins_with(s, o)) {
            best = o->n_frames;
            ret->fixed = true;
            ret->tier = o->tier;
        }
    }
}

/* The lines of each behaviour that are of no site, as parts of those in all of them. */
static void find_rest(const struct profile *p, const struct plan_site *site, bool writes,
                      float ret[PROFILE_BEHAVIOURS])
{
    uint64_t left[PROFILE_BEHAVIOURS];

    for (unsigned b = 0; b < p->n_behaviours; b++) {
        const struct profile_behaviour *in = &p->behaviours[b];
        double lines = writes ? (double)in->writes : (double)in->reads;

        for (unsigned i = 0; i < p->n_sites; i++)
            lines -= writes ? site[i].writes * (double)site[i].writes_in[b]
                            : site[i].reads * (double)site[i].reads_in[b];
        left[b] = (uint64_t)HY_MAX(lines, 0.0);
    }
    find_parts(p, left, writes, ret);
}

/* What was not allocated at a site that the profile knows. */
static bool rest_of(const struct profile *p, const struct plan_site *site, struct plan_site *ret)
{
    struct plan_site rest = {.bytes = p->footprint,
                             .block = REST_BLOCK,
                             .reads = (double)p->source.reads,
                             .writes = (double)p->source.writes};

    for (unsigned i = 0; i < p->n_sites; i++) {
        rest.bytes -= HY_MIN(rest.bytes, site[i].bytes);
        rest.reads -= HY_MIN(rest.reads, site[i].reads);
        rest.writes -= HY_MIN(rest.writes, site[i].writes);
    }
    find_rest(p, site, false, rest.reads_in);
    find_rest(p, site, true, rest.writes_in);
    *ret = rest;
    return rest.bytes >= REST_BLOCK;
}

unsigned site_plan_sites(const struct profile *p, struct plan_site site[PLAN_MAX])
{
    struct plan_times times;
    bool any = false;

    site_times_make(p, &times);
    for (unsigned i = 0; i < p->n_sites; i++)
        any |= p->sites[i].has_tier;
    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *s = &p->sites[i];
        uint64_t most = s->live_bytes != 0 ? s->live_bytes : s->bytes;

        site[i] = (struct plan_site){.bytes = HY_MAX(most, s->max_size),
                                     .block = s->max_size,
                                     .reads = (double)s->reads,
                                     .writes = (double)s->writes,
                                     .held = site_times_held(&times, s->from, s->until),
                                     .key = key_of(s)};
        site_parts(p, s, &site[i]);
        if (any)
            named_tier(p, s, &site[i]);
    }
    return p->n_sites + rest_of(p, site, &site[p->n_sites]);
}

void site_plan_split(const struct profile *p, struct plan_site *site)
{
    for (unsigned i = 0; i < p->n_sites; i++) {
        uint64_t block = site[i].block != 0 ? site[i].block : site[i].bytes;
        double through = (site[i].reads + site[i].writes) * LINE /
                         (double)HY_MAX(p->sites[i].bytes, site[i].bytes);
        double unused = 0, lines;

        if (site_heat_levels(&p->sites[i], site[i].level)) {
            site[i].heat = &p->sites[i];
            site_heat_level(&p->sites[i], site[i].level, 0, &unused, &lines);
        }
        site[i].parts = !site[i].fixed && block >= 2 * PLAN_SPLIT && through >= 1 - unused;
    }
}
