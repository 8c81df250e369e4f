/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_quota.h"

/* Sizes of two runs within this share are the same. */
#define SAME_SIZE 0.125

void quota_scale_note(struct quota_scale *s, uint64_t seen, uint64_t expected)
{
    s->seen += (double)seen;
    s->expected += (double)expected;
}

double quota_scale_get(const struct quota_scale *s)
{
    double scale = s->expected > 0 ? s->seen / s->expected : 1;

    return scale > 1 - SAME_SIZE && scale < 1 + SAME_SIZE ? 1 : scale;
}

/* What it takes, as charged: once there is more than was expected, each block's pages. */
static uint64_t want_of(const struct quota_site *s)
{
    uint64_t blocks = s->block > 0 ? s->live / s->block : 1;

    if (s->lapsed || s->live > s->need)
        return hy_align_up(s->live + (blocks > 1 ? blocks * HY_PAGE : 0), HY_PAGE);
    return s->need;
}

/* Whole blocks that fit; all of it if it has no more than that. */
static uint64_t part_that_fits(const struct quota_site *s, uint64_t want, uint64_t free)
{
    if (want <= free)
        return want;
    if (s->parts)
        return free & ~(uint64_t)(HY_PAGE - 1);
    return s->block > 0 ? free / s->block * s->block : 0;
}

/* Its share; of one with hot parts first these, and the rest of it once all others have had theirs.
 */
static void fill_site(const struct site_plan *plan, const struct quota_site *site, unsigned i,
                      bool rest, uint64_t free[PLAN_TIMES], uint64_t quota[PLAN_MAX])
{
    const struct quota_site *s = &site[i];
    uint64_t want = want_of(s);

    if (s->fixed || plan->place[i].why == PLAN_IDLE || (rest && (s->best == 0 || s->best >= want)))
        return;
    if (!rest && s->best > 0)
        want = HY_MIN(want, s->best);
    uint64_t more =
        part_that_fits(s, want - HY_MIN(quota[i], want), site_plan_least(free, s->held));
    quota[i] += more;
    site_plan_take(free, s->held, more);
}

void site_quota_fill(const struct site_plan *plan, const struct quota_site *site, uint64_t share,
                     uint64_t quota[PLAN_MAX])
{
    uint64_t free[PLAN_TIMES];

    for (unsigned t = 0; t < PLAN_TIMES; t++)
        free[t] = share;
    for (unsigned i = 0; i < plan->n; i++) {
        const struct quota_site *s = &site[i];

        quota[i] = 0;
        if (s->fixed && s->tier == HY_DRAM) {
            quota[i] = want_of(s);
            site_plan_take(free, s->held, quota[i]);
        }
    }
    for (int rest = 0; rest < 2; rest++)
        for (unsigned k = 0; k < plan->n; k++)
            fill_site(plan, site, plan->order[k], rest, free, quota);
}
