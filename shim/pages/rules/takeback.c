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

/* Neighbours go in one call: each call waits for a memory that is in use. */
static unsigned collect(struct history *h, unsigned ranges, enum hy_tier from, uint64_t *take,
                        struct move *list, unsigned cap)
{
    unsigned n = 0;
    for (struct cursor p = {0}; next_moved(h, ranges, &p); p.page++) {
        struct page_group g = history_group(&h[p.range], p.page);
        struct move *last = n > 0 ? &list[n - 1] : NULL;
        if (g.tier != from || take[g.score] == 0)
            continue;
        bool joins = last && last->range == p.range && last->first + last->pages == p.page &&
                     last->pages < MOVE_PAGES;
        if (!joins && n == cap)
            break;
        take[g.score]--;
        if (joins)
            last->pages++;
        else
            list[n++] = (struct move){.range = (uint16_t)p.range,
                                      .first = p.page,
                                      .pages = 1,
                                      .to = from == HY_PM ? HY_DRAM : HY_PM};
    }
    return n;
}

static uint64_t pages_of(const struct move *list, unsigned n)
{
    uint64_t pages = 0;
    for (unsigned i = 0; i < n; i++)
        pages += list[i].pages;
    return pages;
}

/* The first `pages` of them. */
static unsigned cut(struct move *list, unsigned n, uint64_t pages)
{
    unsigned kept = 0;
    for (; kept < n && pages > 0; kept++) {
        list[kept].pages = (uint32_t)HY_MIN((uint64_t)list[kept].pages, pages);
        pages -= list[kept].pages;
    }
    return kept;
}

unsigned takeback_list(struct history *h, unsigned ranges, struct move *list, unsigned cap,
                       uint64_t *ret_pairs)
{
    uint64_t moved[HY_TIERS][SCORES] = {{0}}, take[HY_TIERS][SCORES] = {{0}};
    for (struct cursor p = {0}; next_moved(h, ranges, &p); p.page++) {
        struct page_group g = history_group(&h[p.range], p.page);
        moved[g.tier][g.score]++;
    }
    uint64_t pairs = plan(moved, UINT64_MAX, take);
    if (ret_pairs)
        *ret_pairs = pairs;
    struct move *up = list + cap / 2;
    unsigned downs = collect(h, ranges, HY_DRAM, take[HY_DRAM], list, cap / 2);
    unsigned ups = collect(h, ranges, HY_PM, take[HY_PM], up, cap / 2);
    /* As many each way: nobody else's page fills what would stay free. */
    pairs = HY_MIN(pages_of(list, downs), pages_of(up, ups));
    downs = cut(list, downs, pairs);
    ups = cut(up, ups, pairs);
    if (ups > 0) /* the list may be NULL, of no entries */
        memmove(list + downs, up, ups * sizeof(*up));
    return downs + ups;
}
