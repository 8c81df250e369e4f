/* SPDX-License-Identifier: BSD-2-Clause
 * How unevenly a program uses its pages: what others are told, so that DRAM is divided among
 * programs by what it brings (place/rules/division.h). Pure. */
#ifndef HYBRID_PAGES_RULES_DEMAND_H
#define HYBRID_PAGES_RULES_DEMAND_H

#include "pages/rules/history.h"

/* Where pages are ranked by counted accesses (worth.h): ret[k], in thousandths, is the share of the
 * accesses' worth that does not come to the hottest k of `parts` equal parts of all pages that may
 * move. Told by what came to pages after they had been ranked so: a program that sweeps over its
 * data has hot pages at any moment, but the next accesses go to others. false: none was counted. */
bool demand_cold(const struct heat_map *m, unsigned parts, uint32_t *ret);
/* Another pass has been told of. */
void demand_age(struct heat_map *m);

#endif
