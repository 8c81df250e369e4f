/* SPDX-License-Identifier: BSD-2-Clause
 * Parts of a site's blocks that are used more than others, as a profile tells of them. They are
 * taken together to levels: in each the hottest part is at most twice as hot as the coldest, and
 * such are as good as alike: threads that share a block would rather have the same share of DRAM
 * each than the last percent. A level of a block gets DRAM before any part of the next one does.
 * Pure. */
#ifndef HYBRID_PLACE_RULES_SITE_HEAT_H
#define HYBRID_PLACE_RULES_SITE_HEAT_H

#include "settings/rules/profile.h"

#define HEAT_LEVELS 8 /* the hottest; 0: hardly used at all */

/* The level of each part, 0 for all of them where they are alike: false. */
bool site_heat_levels(const struct profile_site *s, uint8_t ret[PROFILE_BINS]);
/* Of a site's blocks and of its lines, the part that a level is. */
void site_heat_level(const struct profile_site *s, const uint8_t level[PROFILE_BINS], unsigned of,
                     double *ret_bytes, double *ret_lines);
/* The part of its lines that meet DRAM, where this part of its bytes is there. */
double site_heat_met(const struct profile_site *s, const uint8_t level[PROFILE_BINS], double bytes);

#endif
