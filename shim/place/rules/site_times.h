/* SPDX-License-Identifier: BSD-2-Clause
 * When a site holds memory: a run cut into parts by what it has allocated, a bit for each, and the
 * DRAM that is free in each part. The cuts are where the recorded run's sites began and ended, the
 * largest first: so two that follow one another never meet, however short they are. Pure. */
#ifndef HYBRID_PLACE_RULES_SITE_TIMES_H
#define HYBRID_PLACE_RULES_SITE_TIMES_H

#include "settings/rules/profile.h"

#define PLAN_TIMES  32
#define PLAN_ALWAYS UINT32_MAX

struct plan_times {
    unsigned n;
    uint16_t begin[PLAN_TIMES]; /* thousandths of what the run allocates; the first is 0 */
};

void site_times_make(const struct profile *p, struct plan_times *ret);
/* The part of a moment, from 0. */
unsigned site_times_part(const struct plan_times *times, double moment);
/* The parts in which a site holds memory, from two shares of the run (struct profile_site). */
uint32_t site_times_held(const struct plan_times *times, double from, double until);
/* The least that is free in any part of `held`; without any, in all. */
uint64_t site_plan_least(const uint64_t free[PLAN_TIMES], uint32_t held);
void site_plan_take(uint64_t free[PLAN_TIMES], uint32_t held, uint64_t bytes);

#endif
