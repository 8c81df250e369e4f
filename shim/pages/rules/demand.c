/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/demand.h"

static uint64_t pages_of(const struct heat_map *m, unsigned score)
{
    return m->movable[HY_DRAM][score] + m->movable[HY_PM][score];
}

/* Passes after which what came is forgotten. */
#define OF_LATE 64u

void demand_age(struct heat_map *m)
{
    for (unsigned s = 0; s < SCORES; s++)
        m->came[s] -= (m->came[s] + OF_LATE - 1) / OF_LATE;
}

bool demand_cold(const struct heat_map *m, unsigned parts, uint32_t *ret)
{
    double all = 0, hot = 0, pages = 0, taken = 0;
    unsigned k = 0;

    for (unsigned s = 0; s < SCORES; s++) {
        pages += (double)pages_of(m, s);
        all += (double)m->came[s];
    }
    if (all <= 0 || pages <= 0)
        return false;
    for (unsigned s = SCORES; s-- > 0;) {
        double some = (double)pages_of(m, s), each = some > 0 ? (double)m->came[s] / some : 0;
        for (; k < parts && pages * k / parts <= taken + some; k++) {
            double below = hot + (pages * k / parts - taken) * each;
            ret[k] = (uint32_t)(1000 * HY_MAX(1 - below / all, 0.0) + 0.5);
        }
        taken += some;
        hot += (double)m->came[s]; /* also of pages that have another score by now */
    }
    for (; k < parts; k++)
        ret[k] = 0;
    return true;
}
