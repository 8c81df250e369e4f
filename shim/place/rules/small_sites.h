/* SPDX-License-Identifier: BSD-2-Clause
 * Small requests are told apart only where that pays: each has to be unwound. What a plan
 * (site_plan.h) has on PM is kept off DRAM for better sites, so it saves no more than what a byte
 * of those saves beyond a byte of its own, which would have had the DRAM otherwise. Pure. */
#ifndef HYBRID_PLACE_RULES_SMALL_SITES_H
#define HYBRID_PLACE_RULES_SMALL_SITES_H

#include "place/rules/site_plan.h"

/* Nanoseconds of a run that are saved if site `i` of the `n` gets no DRAM that the plan has for
 * better ones; 0 if the plan gives it DRAM itself. */
double small_site_saves(const struct site_plan *plan, const struct plan_site *site, unsigned n,
                        unsigned i);
/* Is that more than what it costs to unwind each of its `count` requests? */
bool small_site_pays(const struct site_plan *plan, const struct plan_site *site, unsigned n,
                     unsigned i, uint64_t count);
/* Which sites of a profile are told apart among requests below `least`: those whose tier it names,
 * and where a plan is short of DRAM (NULL: none is) those that pay. Are there any? */
bool small_sites_choose(const struct profile *p, const struct site_plan *plan,
                        const struct plan_site *site, uint64_t least,
                        bool small[PROFILE_MAX_SITES]);

#endif
