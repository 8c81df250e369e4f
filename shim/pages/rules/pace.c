/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/pace.h"

#define STABLE_PERCENT   2  /* fewer changes: look less often */
#define RESTLESS_PERCENT 10 /* more: look more often */
#define REGRET_PERCENT   25 /* of what was moved: it goes to and fro */
#define WORTHLESS_PASSES 2  /* in a row, before moves pause */
#define LONGEST_PAUSE    64u
#define MOST_SWAPPED     8u  /* of DRAM, in a pass, where it is not clear that it pays */
#define FIRST_CLEAR      32u /* of DRAM, where it is clear, before any has paid */
#define HURRIED          4u  /* passes: two to see it, one to try, one to tell */
#define SMALLEST         3u  /* each trial that did not pay halves the next one, so often */
#define CAREFUL          3u  /* at first an eighth of that */
#define TRUST            2u  /* at each pass that paid, four times as many */

void pace_init(struct pace *p, const struct pace_limits *l)
{
    *p = (struct pace){.limits = *l,
                       .interval = l->interval_min,
                       .move_ns = PACE_MOVE_NS,
                       .next_pause = 1,
                       .caution = CAREFUL};
}

/* rate * elapsed, kept below what one longest interval may collect. */
static int64_t refill(int64_t room, uint64_t per_s, uint64_t elapsed, uint64_t longest)
{
    double most = (double)per_s * (double)HY_MAX(longest, (uint64_t)1) / 1e9;
    double now = (double)room + (double)per_s * (double)elapsed / 1e9;
    now = HY_MIN(now, most);
    return now > 9e18 ? INT64_MAX : (int64_t)now;
}

void pace_elapsed(struct pace *p, uint64_t elapsed, uint64_t spent)
{
    const struct pace_limits *l = &p->limits;
    /* First, as a look may well take longer than an interval. */
    p->time_room -= (int64_t)HY_MIN(spent, (uint64_t)INT64_MAX / 4);
    /* What was saved up is spent in one burst: no more than of one interval. */
    p->byte_room = refill(p->byte_room, l->bytes_per_s, elapsed, p->interval);
    p->time_room =
        refill(p->time_room, (uint64_t)l->core_permille * 1000000u, elapsed, p->interval);
}

void pace_pass(struct pace *p, uint64_t pages, uint64_t changed)
{
    const struct pace_limits *l = &p->limits;
    p->pause -= p->pause > 0;
    p->truce -= p->truce > 0;
    if (p->hurry > 0)
        p->hurry--;
    else if (pages == 0 || changed * 100 < pages * STABLE_PERCENT)
        p->interval = HY_MIN(p->interval + p->interval / 2 + 1, l->interval_max);
    else if (changed * 100 > pages * RESTLESS_PERCENT)
        p->interval = HY_MAX(p->interval / 2, l->interval_min);
}

uint64_t pace_moves(const struct pace *p)
{
    if (pace_paused(p) || p->byte_room <= 0 || p->time_room <= 0)
        return 0;
    return HY_MIN((uint64_t)p->byte_room / HY_PAGE,
                  (uint64_t)p->time_room / HY_MAX(p->move_ns, (uint64_t)1));
}

uint64_t pace_fill(const struct pace *p)
{
    return p->truce > 0 ? 0 : pace_owed(p);
}

uint64_t pace_owed(const struct pace *p)
{
    return p->byte_room <= 0 ? 0 : (uint64_t)p->byte_room / HY_PAGE;
}

void pace_truce(struct pace *p, unsigned passes)
{
    p->truce = HY_MAX(p->truce, passes);
}

void pace_filled(struct pace *p, uint64_t pages)
{
    p->byte_room -= (int64_t)(pages * HY_PAGE);
}

uint64_t pace_swaps(const struct pace *p, uint64_t dram_pages)
{
    return (dram_pages / MOST_SWAPPED) >> (p->caution + HY_MIN(p->worthless, SMALLEST));
}

uint64_t pace_clear(const struct pace *p, uint64_t dram_pages)
{
    return p->caution >= CAREFUL ? (dram_pages / FIRST_CLEAR) >> HY_MIN(p->worthless, SMALLEST)
                                 : UINT64_MAX;
}

void pace_wake(struct pace *p)
{
    p->pause = p->worthless = 0;
    p->next_pause = 1;
    pace_hurry(p);
}

void pace_hurry(struct pace *p)
{
    p->interval = p->limits.interval_min;
    p->hurry = HURRIED;
}

void pace_moved(struct pace *p, uint64_t pages, uint64_t spent)
{
    if (pages == 0)
        return;
    p->byte_room -= (int64_t)(pages * HY_PAGE);
    p->time_room -= (int64_t)spent;
    p->move_ns = (3 * p->move_ns + spent / pages) / 4;
}

void pace_result(struct pace *p, int64_t gained, uint64_t cost, uint64_t moved, uint64_t regretted)
{
    bool paid = gained > 0 && (uint64_t)gained >= cost;
    if (moved > 0 && regretted * 100 > moved * REGRET_PERCENT)
        paid = false;
    if (paid) {
        p->worthless = 0;
        p->next_pause = 1;
        p->caution -= HY_MIN(p->caution, TRUST);
        return;
    }
    p->caution = CAREFUL;
    if (++p->worthless < WORTHLESS_PASSES)
        return;
    /* After the pause one pass of moves tries again. */
    p->pause = p->next_pause;
    p->next_pause = HY_MIN(p->next_pause * 2, LONGEST_PAUSE);
}
