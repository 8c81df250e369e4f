/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/small_sites.h"

/* Unwinding a small request. */
#define UNWIND_NS 100.0

/* Of a byte on DRAM. */
static double density(const struct site_plan *plan, const struct plan_site *site, unsigned i)
{
    return plan->place[i].saves_ns / (double)HY_MAX(site[i].bytes, 1u);
}

double small_site_saves(const struct site_plan *plan, const struct plan_site *site, unsigned n,
                        unsigned i)
{
    double own = density(plan, site, i), better = 0, gain = 0;

    if (plan->place[i].tier == HY_DRAM)
        return 0;
    for (unsigned k = 0; k < n; k++) {
        double more = density(plan, site, k) - own, bytes = (double)plan->place[k].dram_bytes;

        if (more > 0 && bytes > 0) {
            better += bytes;
            gain += more * bytes;
        }
    }
    return better > 0 ? gain * HY_MIN((double)site[i].bytes / better, 1.0) : 0;
}

bool small_site_pays(const struct site_plan *plan, const struct plan_site *site, unsigned n,
                     unsigned i, uint64_t count)
{
    return small_site_saves(plan, site, n, i) > UNWIND_NS * (double)count;
}

bool small_sites_choose(const struct profile *p, const struct site_plan *plan,
                        const struct plan_site *site, uint64_t least, bool small[PROFILE_MAX_SITES])
{
    bool any = false;

    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *s = &p->sites[i];

        small[i] = s->has_tier || (plan && s->max_size < least &&
                                   small_site_pays(plan, site, p->n_sites, i, s->count));
        any |= small[i] && s->min_size < least;
    }
    return any;
}
