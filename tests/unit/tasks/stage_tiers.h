/* SPDX-License-Identifier: BSD-2-Clause
 * A host of staging (tasks/staging.h) whose tiers are books only: pages from tiers_base on are on
 * the tier that is written in tier_of. */
#ifndef HYBRID_TESTS_STAGE_TIERS_H
#define HYBRID_TESTS_STAGE_TIERS_H

#include <string.h>

#include "settings/settings.h"
#include "tasks/staging.h"

struct runtime_config hy_config; /* no profile */

static int8_t tier_of[TIERS_PAGES];
static uintptr_t tiers_base;
static uint32_t on_dram;

static uint64_t tiers_plenty(void)
{
    return 1u << 20;
}

static uint64_t tiers_free_pages(void)
{
    return TIERS_DRAM - on_dram;
}

static int tiers_where(void *at, unsigned pages, int8_t *ret_tier)
{
    memcpy(ret_tier, tier_of + ((uintptr_t)at - tiers_base) / HY_PAGE, pages);
    return 0;
}

static bool tiers_move(void *at, unsigned pages, enum hy_tier to)
{
    int8_t *t = tier_of + ((uintptr_t)at - tiers_base) / HY_PAGE;
    uint32_t come = 0;
    for (unsigned i = 0; i < pages; i++)
        come += t[i] != (int8_t)to;
    if (to == HY_DRAM && come > tiers_free_pages())
        return false;
    on_dram = to == HY_DRAM ? on_dram + come : on_dram - come;
    memset(t, to, pages);
    return true;
}

static double tiers_move_ns(void)
{
    return TIERS_MOVE_NS;
}

static double tiers_may_lose(void)
{
    return 1e12;
}

static void tiers_lose(double ns)
{
    (void)ns;
}

static double tiers_slowdown(void)
{
    return 4;
}

#define TIERS_HOST                                                                                 \
    .may_move = tiers_plenty, .free_pages = tiers_free_pages, .where = tiers_where,                \
    .move_ns = tiers_move_ns, .may_lose = tiers_may_lose, .lose = tiers_lose,                      \
    .slowdown = tiers_slowdown

#endif
