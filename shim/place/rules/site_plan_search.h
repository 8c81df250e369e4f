/* SPDX-License-Identifier: BSD-2-Clause
 * The best set of items that fits, of a plan of sites (site_plan.h): by branch and bound, and where
 * they do not all hold memory at the same time, as good a set as two greedy orders find. Pure. */
#ifndef HYBRID_PLACE_RULES_SITE_PLAN_SEARCH_H
#define HYBRID_PLACE_RULES_SITE_PLAN_SEARCH_H

#include "place/rules/site_plan.h"

/* What a byte saves most of comes first. qsort may allocate. */
void plan_sort(struct plan_item *it, unsigned n);
/* Of items in that order: sets `best` of each. Is it known that there is no better set? */
bool plan_search(struct plan_item *it, unsigned n, uint64_t room);

#endif
