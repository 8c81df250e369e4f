/* SPDX-License-Identifier: BSD-2-Clause
 * How unevenly a program uses its pages: what others are told, so that DRAM is divided among
 * programs by what it brings (place/rules/division.h). Pure. */
#ifndef HYBRID_PAGES_RULES_DEMAND_H
#define HYBRID_PAGES_RULES_DEMAND_H

#include "pages/rules/history.h"

/* Where pages are ranked by counted accesses (worth.h): ret[k], in thousandths, is the share of
 * their worth that does not lie on the hottest k of `parts` equal parts of all pages that may move.
 * false: no access was counted. */
bool demand_cold(const struct heat_map *m, unsigned parts, uint32_t *ret);

#endif
