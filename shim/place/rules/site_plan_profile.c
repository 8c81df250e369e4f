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

int site_plan_work(const struct profile *p, const struct machine_figures *f, struct work *ret)
{
    struct work k = {.threads = THREADS, .foreseen = FORESEEN, .exposure = EXPOSED_BANDWIDTH};

    for (unsigned i = 0; i < p->n_sites; i++) {
        k.reads += (double)p->sites[i].reads;
        k.writes += (double)p->sites[i].writes;
    }
    if (k.reads + k.writes <= 0)
        return -ENODATA;
    k.reads = HY_MAX(k.reads, (double)p->source.reads);
    k.writes = HY_MAX(k.writes, (double)p->source.writes);
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
    find_compute(f, p->slowdown, &k);
    *ret = k;
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

        site[i].parts = !site[i].fixed && block >= 2 * PLAN_SPLIT && through >= 1;
    }
}
