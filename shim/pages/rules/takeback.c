/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/takeback.h"

#include <string.h>

#define OF_LATE  0.25 /* weight of a pass */
#define BORROWED 0.5

void exchange_gained(struct exchange_account *a, double gain_ns)
{
    a->balance_ns += gain_ns;
    a->gained_ns += gain_ns;
    a->losing_ns = HY_MAX(a->losing_ns - gain_ns, 0.0);
    a->income_ns += (gain_ns - a->income_ns) * OF_LATE;
}

void exchange_paid(struct exchange_account *a, double cost_ns)
{
    a->balance_ns -= cost_ns;
}

double exchange_may_spend(const struct exchange_account *a, double passes)
{
    double borrowed = HY_MIN(a->income_ns * passes, a->gained_ns * BORROWED);
    return HY_MAX(a->balance_ns + HY_MAX(borrowed, 0.0), 0.0);
}

bool exchange_loses(const struct exchange_account *a, double back_ns)
{
    return back_ns > 0 && a->losing_ns > back_ns;
}

/* A sweep over the moved pages of all ranges. */
struct cursor {
    unsigned range;
    uint32_t page;
};

static bool next_moved(const struct history *h, unsigned ranges, struct cursor *p)
{
    for (; p->range < ranges; p->range++, p->page = 0)
        for (; h[p->range].count && p->page < h[p->range].pages; p->page++)
            if (h[p->range].count[p->page].moved)
                return true;
    return false;
}

/* How many of each rank: the lowest of DRAM for the highest of PM. */
static uint64_t plan(uint64_t moved[HY_TIERS][SCORES], uint64_t most,
                     uint64_t take[HY_TIERS][SCORES])
{
    unsigned low = 0, high = SCORES - 1;
    uint64_t pairs = 0;
    while (low < high && pairs < most) {
        uint64_t n = HY_MIN(moved[HY_DRAM][low] - take[HY_DRAM][low],
                            moved[HY_PM][high] - take[HY_PM][high]);
        n = HY_MIN(n, most - pairs);
        take[HY_DRAM][low] += n;
        take[HY_PM][high] += n;
        pairs += n;
        if (take[HY_DRAM][low] == moved[HY_DRAM][low])
            low++;
        else
            high--;
    }
    return pairs;
}

static unsigned collect(struct history *h, unsigned ranges, enum hy_tier from, uint64_t *take,
                        struct move *list, unsigned n, unsigned cap)
{
    for (struct cursor p = {0}; n < cap && next_moved(h, ranges, &p); p.page++) {
        struct page_group g = history_group(&h[p.range], p.page);
        if (g.tier != from || take[g.score] == 0)
            continue;
        take[g.score]--;
        list[n++] = (struct move){.range = (uint16_t)p.range,
                                  .first = p.page,
                                  .pages = 1,
                                  .to = from == HY_PM ? HY_DRAM : HY_PM};
    }
    return n;
}

unsigned takeback_list(struct history *h, unsigned ranges, struct move *list, unsigned cap,
                       uint64_t *ret_pairs)
{
    uint64_t moved[HY_TIERS][SCORES] = {{0}}, take[HY_TIERS][SCORES] = {{0}};
    for (struct cursor p = {0}; next_moved(h, ranges, &p); p.page++) {
        struct page_group g = history_group(&h[p.range], p.page);
        moved[g.tier][g.score]++;
    }
    if (ret_pairs) {
        *ret_pairs = plan(moved, UINT64_MAX, take);
        memset(take, 0, sizeof(take));
    }
    unsigned pairs = (unsigned)plan(moved, cap / 2, take);
    unsigned n = collect(h, ranges, HY_DRAM, take[HY_DRAM], list, 0, pairs);
    return collect(h, ranges, HY_PM, take[HY_PM], list, n, 2 * pairs);
}
