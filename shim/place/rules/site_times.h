/* SPDX-License-Identifier: BSD-2-Clause
 * When a site holds memory: a run cut into parts by what it has allocated, a bit for each, and the
 * DRAM that is free in each part. Pure. */
#ifndef HYBRID_PLACE_RULES_SITE_TIMES_H
#define HYBRID_PLACE_RULES_SITE_TIMES_H

#include "base/types.h"

#define PLAN_TIMES  32
#define PLAN_ALWAYS UINT32_MAX

/* The parts of a run in which a site holds memory, from two shares of it (struct profile_site). */
uint32_t site_plan_held(double from, double until);
/* The least that is free in any part of `held`; without any, in all. */
uint64_t site_plan_least(const uint64_t free[PLAN_TIMES], uint32_t held);
void site_plan_take(uint64_t free[PLAN_TIMES], uint32_t held, uint64_t bytes);

#endif
