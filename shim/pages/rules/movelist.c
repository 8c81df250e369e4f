/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/movelist.h"

#include <string.h>

#define PROMOTE_FROM (BAND_L_WARM * SCORE_BAND)

/* --- how many ------------------------------------------------------------------ */

struct planner {
    const struct heat_map *m;
    struct move_plan *p;
    uint64_t left;  /* moves */
    uint64_t swaps; /* of them down that are not needed for room */
};

static uint64_t take(struct planner *x, enum hy_tier from, unsigned score, uint64_t pages)
{
    uint64_t n = HY_MIN(pages, x->m->movable[from][score] - x->p->take[from][score]);
    n = HY_MIN(n, x->left);
    x->p->take[from][score] += n;
    x->left -= n;
    *(from == HY_PM ? &x->p->up : &x->p->down) += n;
    return n;
}

/* The coldest pages of DRAM up to this score; how many. */
static uint64_t take_coldest(struct planner *x, unsigned limit, uint64_t pages)
{
    uint64_t n = 0;
    for (unsigned s = 0; s < limit && n < pages; s++)
        n += take(x, HY_DRAM, s, pages - n);
    return n;
}

/* Hot pages to PM, as DRAM's bandwidth is used up: those that are only read, then those that
 * are written less. Cold ones would not relieve it. */
static void shed(struct planner *x, uint64_t pages)
{
    static const uint8_t order[] = {BAND_HOT_RD, BAND_L_HOT, BAND_H_HOT};
    for (unsigned b = 0; b < HY_ARRAY_SIZE(order); b++)
        for (unsigned i = SCORE_BAND; i-- > 0 && pages > 0;)
            pages -= take(x, HY_DRAM, order[b] * SCORE_BAND + i, pages);
}

/* The same where it is known what pages are worth. */
static uint64_t exchange_by_worth(struct planner *x, const uint8_t *below, uint64_t most)
{
    uint64_t done = 0;
    for (unsigned s = SCORES; s-- > 1 && x->left > 0 && done < most && below[s] > 0;) {
        uint64_t wanted = HY_MIN(x->m->movable[HY_PM][s] - x->p->take[HY_PM][s], x->left / 2);
        wanted = HY_MIN(wanted, most - done);
        uint64_t places = take_coldest(x, below[s], wanted);
        take(x, HY_PM, s, places);
        done += places;
        if (places < wanted)
            break;
    }
    return done;
}

/* One goes down for one that comes up, as long as their scores differ by the margin and for at
 * most `most` pairs. */
static uint64_t exchange(struct planner *x, const struct move_limits *l, unsigned margin,
                         uint64_t most)
{
    uint64_t done = 0;
    for (unsigned s = SCORES; s-- > HY_MAX(PROMOTE_FROM, margin) && x->left > 0 && done < most;) {
        if (l->no_reads_up && score_band(s) == BAND_HOT_RD)
            continue;
        uint64_t wanted = HY_MIN(x->m->movable[HY_PM][s] - x->p->take[HY_PM][s], x->left / 2);
        wanted = HY_MIN(wanted, most - done);
        uint64_t places = take_coldest(x, s - margin + 1, wanted);
        take(x, HY_PM, s, places);
        done += places;
        if (places < wanted)
            break; /* nothing in DRAM is that much colder, still less for the next */
    }
    return done;
}

static void fill(struct planner *x, const struct move_limits *l)
{
    uint64_t room = x->p->room;
    /* Free DRAM is better used by pages that are seen at times than by none. */
    for (unsigned s = SCORES;
         s-- > 0 && (l->below ? s >= l->fill_from : l->fill_cold || score_tier(s) != HY_PM) &&
         room > 0;)
        if (!l->no_reads_up || score_band(s) != BAND_HOT_RD)
            room -= take(x, HY_PM, s, room);
}

static void promote(struct planner *x, const struct move_limits *l)
{
    fill(x, l);
    if (l->below) {
        x->swaps -= exchange_by_worth(x, l->below, x->swaps);
        return;
    }
    (void)exchange(x, l, HY_MAX((unsigned)l->margin, MOVE_CLEAR), l->clear);
    x->swaps -= exchange(x, l, l->margin, x->swaps);
}

void move_plan(const struct heat_map *m, const struct move_limits *l, struct move_plan *ret)
{
    struct planner x = {.m = m, .p = ret, .left = l->moves};
    x.swaps = HY_MIN(l->swaps, l->moves);
    memset(ret, 0, sizeof(*ret));
    uint64_t used = m->on[HY_DRAM];
    if (used > l->dram_pages)
        take_coldest(&x, SCORES, used - l->dram_pages);
    else
        ret->room = l->dram_pages - used;
    if (l->shed > 0)
        shed(&x, l->shed);
    else
        promote(&x, l);
    for (unsigned s = 0; l->eager && s < SCORES && score_tier(s) == HY_PM; s++)
        x.swaps -= take(&x, HY_DRAM, s, x.swaps);
}

/* --- which ones ------------------------------------------------------------------ */

struct sweep {
    struct history *h;
    struct move_plan *plan;
    struct move *list;
    unsigned n, cap;
    uint64_t found[HY_TIERS]; /* pages, by where they go */
};

static void add_move(struct sweep *s, unsigned range, uint32_t first, uint32_t pages,
                     enum hy_tier to)
{
    struct move *last = s->n > 0 ? &s->list[s->n - 1] : NULL;
    s->found[to] += pages;
    if (last && last->range == range && last->to == to && last->first + last->pages == first &&
        last->pages + pages <= MOVE_PAGES) {
        last->pages += pages;
        return;
    }
    s->list[s->n++] =
        (struct move){.range = (uint16_t)range, .first = first, .pages = pages, .to = to};
}

/* Take of a group what the plan takes; false: the list is full. */
static bool visit(struct sweep *s, unsigned range, const struct page_group *g)
{
    uint64_t *open = &s->plan->take[g->tier][g->score];
    uint32_t n = (uint32_t)HY_MIN(*open, (uint64_t)g->pages);
    if (n == 0 || g->resting)
        return true;
    if (s->n == s->cap)
        return false;
    if (n < g->pages)
        history_cut(&s->h[range], g->first + n);
    *open -= n;
    add_move(s, range, g->first, n, g->tier == HY_PM ? HY_DRAM : HY_PM);
    return true;
}

static bool unwanted(const struct page_group *g)
{
    enum hy_tier t = score_tier(g->score);
    return g->moved && t != HY_TIERS && t != g->tier;
}

/* Put the moves to PM first; of those to DRAM drop what has no place: the sweep may not
 * have come by all the pages that were to go. */
static unsigned settle(struct sweep *s)
{
    uint64_t places = s->plan->room + s->found[HY_PM];
    unsigned down = 0, kept;
    for (unsigned i = 0; i < s->n; i++)
        if (s->list[i].to == HY_PM) {
            struct move m = s->list[i];
            s->list[i] = s->list[down];
            s->list[down++] = m;
        }
    for (kept = down; kept < s->n && places > 0; kept++) {
        struct move *m = &s->list[kept];
        m->pages = (uint32_t)HY_MIN((uint64_t)m->pages, places);
        places -= m->pages;
    }
    return kept;
}

unsigned move_list(struct history *h, unsigned ranges, struct move_plan *plan,
                   struct move_hand *hand, uint64_t visits, struct move *list, unsigned cap,
                   uint64_t *ret_regret)
{
    struct sweep s = {.h = h, .plan = plan, .list = list, .cap = cap};
    uint64_t regret = 0;
    if (hand->range >= ranges)
        *hand = (struct move_hand){0, 0};
    struct move_hand start = *hand;
    bool around = false, full = false;
    for (uint64_t i = 0; i < visits && ranges > 0 && !full; i++) {
        if (hand->page >= h[hand->range].pages) {
            hand->page = 0;
            hand->range = (hand->range + 1) % ranges;
            around |= hand->range == 0;
            continue;
        }
        if (around &&
            (hand->range > start.range || (hand->range == start.range && hand->page >= start.page)))
            break;
        struct page_group g = history_group(&h[hand->range], hand->page);
        regret += !h[hand->range].count && unwanted(&g) ? g.pages : 0;
        full = !visit(&s, hand->range, &g);
        hand->page = full ? g.first : g.first + g.pages;
    }
    if (ret_regret)
        *ret_regret = regret;
    return settle(&s);
}
