/* SPDX-License-Identifier: BSD-2-Clause
 * A plan of sites (site_plan.h) meets the run: sites come in any order, are larger or smaller
 * than they were, or do not come at all. What holds is the ranking: each site may have the DRAM
 * that the better ones leave of the share, and what a better one has not asked for yet is kept
 * for it. A site whose blocks can be split may have any part of them. Pure. */
#ifndef HYBRID_PLACE_RULES_SITE_QUOTA_H
#define HYBRID_PLACE_RULES_SITE_QUOTA_H

#include "place/rules/site_plan.h"

struct quota_site {
    uint64_t live;  /* bytes in use now, on either memory */
    uint64_t need;  /* most that is expected, as charged; more once there is more */
    uint64_t block; /* its largest, as charged */
    uint64_t best;  /* its hottest parts, as the plan has them: what is beyond comes after all
                     * others;  0: they are alike */
    uint32_t held;  /* as in struct plan_site */
    bool lapsed;    /* nothing is kept for it beyond what it has */
    bool parts;     /* as in struct plan_site */
    bool fixed;
    enum hy_tier tier;
};

/* How much of the profile's sizes this run has: from the first sites that came, whose blocks
 * are compared with theirs. Sizes within an eighth are the same. */
struct quota_scale {
    double seen, expected; /* bytes */
};
void quota_scale_note(struct quota_scale *s, uint64_t seen, uint64_t expected);
double quota_scale_get(const struct quota_scale *s); /* 1 unless there is reason */

/* DRAM for each of the plan's sites; 0: PM. Their sum is at most `share` in each part of the run
 * but for sites whose tier is named. */
void site_quota_fill(const struct site_plan *plan, const struct quota_site *site, uint64_t share,
                     uint64_t quota[PLAN_MAX]);

#endif
