/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap/rules/keep.h"

#define BASE         (HY_MIB / HY_PAGE)
#define SHARE        32
#define PARKED_SHARE 8
#define REGRET_BASE  (64 * HY_MIB / HY_PAGE)
#define REGRET_SHARE 2

uint64_t keep_limit(const struct keep *k, uint64_t live, enum keep_mood mood)
{
    if (mood == KEEP_LITTLE)
        return HY_MIN(k->regret, live / SHARE);
    if (mood == KEEP_FAR)
        return HY_MIN(k->regret, live);
    return mood == KEEP_TIGHT ? BASE : BASE + live / SHARE + k->regret;
}

uint64_t keep_parked_limit(uint64_t live)
{
    return (BASE + live / SHARE) / PARKED_SHARE;
}

void keep_note_back(struct keep *k, uint64_t pages)
{
    k->early += pages;
}

void keep_note_fresh(struct keep *k, uint64_t pages, uint64_t live)
{
    if (k->early < pages)
        return;
    k->early -= pages;
    k->regret = HY_MIN(k->regret + 2 * pages, REGRET_BASE + live / REGRET_SHARE);
}

void keep_tick(struct keep *k)
{
    k->early = 0;
    k->regret -= (k->regret + 7) / 8;
}
