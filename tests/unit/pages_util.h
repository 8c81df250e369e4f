/* SPDX-License-Identifier: BSD-2-Clause
 * For the tests of page histories: a check of everything that must hold of one. */
#ifndef HYBRID_TESTS_PAGES_UTIL_H
#define HYBRID_TESTS_PAGES_UTIL_H

#include <string.h>

#include "pages/rules/history.h"

/* Groups tile the ranges, every page is found in its own, and the map agrees with them.
 * NULL, or what is wrong. */
static inline const char *histories_wrong(const struct history *h, unsigned ranges,
                                          const struct heat_map *m)
{
    static struct heat_map sum;
    memset(&sum, 0, sizeof(sum));
    for (unsigned r = 0; r < ranges; r++)
        for (uint32_t at = 0; at < h[r].pages;) {
            struct page_group g = history_group(&h[r], at);
            if (g.first != at)
                return "a group does not begin where the one before ends";
            if (g.pages == 0 || (g.pages & (g.pages - 1)) || g.pages > HISTORY_BLOCK)
                return "a group of an odd size";
            if (g.first % g.pages || g.pages > h[r].pages - g.first)
                return "a group is not aligned or too long";
            for (uint32_t i = at; i < at + g.pages; i += HY_MAX(1u, g.pages / 5))
                if (history_group(&h[r], i).first != at)
                    return "a page is not found in its group";
            sum.on[g.tier] += g.pages;
            if (!g.resting)
                sum.movable[g.tier][g.score] += g.pages;
            at += g.pages;
        }
    if (memcmp(sum.on, m->on, sizeof(sum.on)))
        return "pages on a tier are miscounted";
    if (memcmp(sum.movable, m->movable, sizeof(sum.movable)))
        return "pages of a score are miscounted";
    return NULL;
}

#endif
