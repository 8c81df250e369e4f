/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/rules/history.h"

#include <string.h>

#include "pages/rules/seen.h"

/* The state byte. */
#define HEAT_MASK  7u
#define COOL_SHIFT 3u
#define COOL_MASK  (3u << COOL_SHIFT)
#define ON_PM      (1u << 5)
#define STABLE     (1u << 6)
#define GROUP      (1u << 7) /* the next record holds the order */

/* A group that is in use is watched by one page of each so many, and at least two: one
 * alone would never tell that they have come to differ. */
#define STAND_FOR 32u

_Static_assert(sizeof(struct page_record) == 2, "a tracked page costs two bytes");
_Static_assert(HEAT_MAX == HEAT_MASK && HISTORY_COOL <= 3, "they fit");

void heat_map_init(struct heat_map *m, const struct predictor *p)
{
    memset(m, 0, sizeof(*m));
    m->predictor = *p;
    for (unsigned passes = 0; passes < 256; passes++)
        for (unsigned heat = 0; heat <= HEAT_MAX; heat++)
            m->score[passes][heat] = (uint8_t)page_score(p, passes, heat);
}

/* --- records ------------------------------------------------------------- */

static unsigned order_at(const struct history *h, uint32_t head)
{
    return h->rec[head].state & GROUP ? h->rec[head + 1].passes : 0;
}

static unsigned score_of(const struct history *h, uint32_t head)
{
    struct page_record r = h->rec[head];
    return h->count ? h->count[head].score : h->map->score[r.passes][r.state & HEAT_MASK];
}

static enum hy_tier tier_of(struct page_record r)
{
    return r.state & ON_PM ? HY_PM : HY_DRAM;
}

/* Count a group of `pages` pages in or (sign -1) out. */
static void count(struct history *h, uint32_t head, uint64_t pages, int sign)
{
    uint64_t n = sign < 0 ? 0 - pages : pages;
    struct page_record r = h->rec[head];
    h->map->on[tier_of(r)] += n;
    if (r.state & COOL_MASK)
        return;
    h->map->movable[tier_of(r)][score_of(h, head)] += n;
    h->map->band[tier_of(r)][score_band(h->map->score[r.passes][r.state & HEAT_MASK])] += n;
}

/* By which a page that is not where it would be without us changes `owed` when it goes. */
static int owes(const struct history *h, uint32_t page, enum hy_tier on)
{
    return h->count[page].moved ? (on == HY_PM ? 1 : -1) : 0;
}

static void leave(struct history *h, uint32_t page, enum hy_tier on)
{
    h->map->owed += owes(h, page, on);
    h->count[page].moved = false;
}

static void come(struct history *h, uint32_t page, enum hy_tier on)
{
    h->count[page].gone = false;
    h->count[page].moved = on == HY_PM ? h->map->owed > 0 : h->map->owed < 0;
    h->map->owed -= owes(h, page, on);
}

static void write_head(struct history *h, uint32_t head, unsigned order, struct page_record r)
{
    r.state = (uint8_t)((r.state & ~GROUP) | (order ? GROUP : 0));
    h->rec[head] = r;
    if (order)
        h->rec[head + 1] = (struct page_record){.passes = (uint8_t)order};
}

/* With other counts, for each page of the group or the same for all; NULL: as they are. */
static void change_counts(struct history *h, uint32_t head, struct page_record r,
                          const struct page_count *c, bool each)
{
    unsigned order = order_at(h, head);
    count(h, head, 1u << order, -1);
    write_head(h, head, order, r);
    for (uint32_t i = 0; h->count && c && i < 1u << order; i++)
        h->count[head + i] = c[each ? i : 0];
    count(h, head, 1u << order, 1);
}

static void change(struct history *h, uint32_t head, struct page_record r)
{
    change_counts(h, head, r, NULL, false);
}

/* Halves know what the whole knew. */
static void split(struct history *h, uint32_t head)
{
    unsigned order = order_at(h, head) - 1;
    write_head(h, head, order, h->rec[head]);
    write_head(h, head + (1u << order), order, h->rec[head]);
}

/* Head of the group of a page. The leftmost group below any aligned node of a block begins
 * where the node does, so one walk down finds it. */
static uint32_t head_of(const struct history *h, uint32_t page)
{
    uint32_t node = page & ~(HISTORY_BLOCK - 1);
    for (unsigned order = HISTORY_ORDER; order > 0; order--) {
        uint32_t half = 1u << (order - 1);
        if (order_at(h, node) >= order)
            break;
        if (page & half)
            node += half;
    }
    return node;
}

struct page_group history_group(const struct history *h, uint32_t page)
{
    uint32_t head = head_of(h, page);
    struct page_record r = h->rec[head];
    unsigned heat = r.state & HEAT_MASK;
    return (struct page_group){
        .first = head,
        .pages = 1u << order_at(h, head),
        .tier = tier_of(r),
        .passes = r.passes,
        .heat = (uint8_t)heat,
        .score = (uint8_t)score_of(h, head),
        .resting = (r.state & COOL_MASK) != 0,
        .moved = (r.state & COOL_MASK) > 1u << COOL_SHIFT,
        .reuse = reuse_class(heat, (r.state & STABLE) != 0),
    };
}

void history_init(struct history *h, struct page_record *rec, struct page_count *count,
                  uint32_t pages, enum hy_tier tier, struct heat_map *map)
{
    *h = (struct history){.rec = rec, .count = count, .map = map};
    history_grow(h, pages, tier);
}

void history_grow(struct history *h, uint32_t pages, enum hy_tier tier)
{
    struct page_record cold = {.state = tier == HY_PM ? ON_PM : 0};
    uint32_t at = h->pages;
    h->pages = pages;
    for (uint32_t i = at; h->count && i < pages; i++)
        h->count[i] = (struct page_count){.gone = true};
    while (at < pages) {
        unsigned order = HISTORY_ORDER;
        while (1u << order > pages - at || at & ((1u << order) - 1))
            order--;
        write_head(h, at, order, cold);
        count(h, at, 1u << order, 1);
        at += 1u << order;
    }
}

/* Give pages a record of their own, group by group. */
static void assign(struct history *h, uint32_t first, uint32_t end, struct page_record r,
                   const struct page_count *each)
{
    static const struct page_count none = {.gone = true};
    history_cut(h, first);
    history_cut(h, end);
    for (uint32_t at = first; at < end; at += 1u << order_at(h, at))
        change_counts(h, at, r, each ? each + (at - first) : &none, each != NULL);
}

void history_copy(struct history *to, const struct history *h, uint32_t from)
{
    uint32_t end = from + to->pages;
    for (uint32_t at = from; at < end;) {
        struct page_group g = history_group(h, at);
        uint32_t stop = HY_MIN(g.first + g.pages, end);
        for (uint32_t i = at; h->count && i < stop; i++) /* which of both ends is the same */
            h->map->owed -= owes(h, i, g.tier);
        assign(to, at - from, stop - from, h->rec[g.first], h->count ? h->count + at : NULL);
        at = stop;
    }
}

void history_drop(struct history *h)
{
    for (uint32_t at = 0; at < h->pages;) {
        uint32_t n = 1u << order_at(h, at);
        count(h, at, n, -1);
        for (uint32_t i = at; h->count && i < at + n; i++)
            leave(h, i, tier_of(h->rec[at]));
        at += n;
    }
    h->pages = 0;
}

static uint32_t block_end(const struct history *h, uint32_t block)
{
    uint64_t end = ((uint64_t)block + 1) * HISTORY_BLOCK;
    return (uint32_t)HY_MIN(end, (uint64_t)h->pages);
}

/* --- a pass ---------------------------------------------------------------- */

void history_watch(const struct history *h, uint32_t block, uint64_t random, struct page_set *ret)
{
    uint32_t base = block * HISTORY_BLOCK, end = block_end(h, block);
    memset(ret, 0, sizeof(*ret));
    for (uint32_t at = base; at < end;) {
        uint32_t n = 1u << order_at(h, at);
        bool cold = h->rec[at].passes == 0 && !(h->rec[at].state & HEAT_MASK);
        uint32_t step = cold || n == 1 ? 1 : HY_MIN(n / 2, STAND_FOR);
        for (uint32_t i = 0; i < n; i += step) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            page_set_add(ret, at - base + i + (uint32_t)(random >> 33) % step);
        }
        at += n;
    }
}

struct block_pass {
    struct history *h;
    const struct page_set *watched;
    const struct page_seen *seen;
    struct pass_stats *stats;
    uint32_t base;
    unsigned rounds;
};

static struct observed look(const struct block_pass *b, uint32_t head, uint32_t pages)
{
    struct observed all = {0};
    for (uint32_t i = head - b->base; i < head - b->base + pages; i++) {
        if (!page_set_has(b->watched, i))
            continue;
        struct observed o = seen_observe(&b->seen[i], b->rounds);
        if (!all.known) {
            all = o;
            continue;
        }
        all.watched++;
        all.least = HY_MIN(all.least, o.level);
        all.most = HY_MAX(all.most, o.level);
        /* A level is 14% of the scale, one more or less is the same with luck. A page seen
         * never and one seen at all are not the same. */
        all.differ |= all.wd != o.wd || all.most - all.least > 1 || !all.least != !all.most;
        all.written |= o.written;
        all.stable &= o.stable;
    }
    all.level = (uint8_t)((all.least + all.most) / 2);
    return all;
}

static void push(struct block_pass *b, uint32_t head, const struct observed *o)
{
    struct history *h = b->h;
    struct page_record r = h->rec[head];
    uint64_t pages = 1u << order_at(h, head);
    enum prediction before = predict(&h->map->predictor, r.passes);
    unsigned heat = heat_smooth(r.state & HEAT_MASK, o->level);
    unsigned cool = (r.state & COOL_MASK) >> COOL_SHIFT;
    cool -= cool > 0;
    r.passes = (uint8_t)(r.passes << 1 | o->wd);
    r.state = (uint8_t)(heat | cool << COOL_SHIFT | (r.state & ON_PM) | (o->stable ? STABLE : 0));
    change(h, head, r);
    enum prediction now = predict(&h->map->predictor, r.passes);
    b->stats->observed += pages;
    b->stats->changed += before != now ? pages : 0;
    b->stats->right += (before != UN_WD) == o->wd ? pages : 0;
    b->stats->written += o->written ? pages : 0;
    b->stats->predicted[now] += pages;
    b->stats->reuse[reuse_class(heat, o->stable)] += pages;
}

/* Neighbours that are ranked together. */
static void count_pool(struct history *h, uint32_t first, uint32_t pages,
                       const struct page_seen *accesses, const struct worth_rule *rule,
                       int64_t *gain)
{
    struct page_count *c = &h->count[first];
    uint32_t sum = 0, any = 0;
    for (uint32_t i = 0; i < pages; i++)
        any |= (uint32_t)(accesses[i].reads | accesses[i].writes | c[i].mean | c[i].score);
    if (!any)
        return;
    for (uint32_t i = 0; i < pages; i++) {
        int64_t units =
            (int64_t)accesses[i].reads * rule->read + (int64_t)accesses[i].writes * rule->write;
        h->map->came[c[i].score] += (uint64_t)units;
        worth_foretold_add(&h->map->foretold, c[i].mean, units);
        c[i].mean = worth_mean(rule, c[i].mean, accesses[i].reads, accesses[i].writes);
        sum += c[i].mean;
        if (!c[i].moved && !c[i].gone)
            continue;
        enum hy_tier on = tier_of(h->rec[head_of(h, first + i)]);
        if (c[i].gone && units > 0) /* it may be gone again before anybody looks */
            come(h, first + i, on);
        if (c[i].moved)
            *gain += on == HY_DRAM ? units : -units;
    }
    for (uint32_t i = 0; i < pages; i++) {
        struct page_count now = c[i];
        now.score = (uint8_t)worth_score(worth_pooled(rule, now.mean, sum, pages));
        if (now.score == c[i].score)
            continue;
        history_cut(h, first + i);
        history_cut(h, first + i + 1);
        change_counts(h, first + i, h->rec[first + i], &now, false);
    }
}

void history_count(struct history *h, uint32_t block, const struct page_seen *accesses,
                   const struct worth_rule *rule, int64_t *gain)
{
    uint32_t base = block * HISTORY_BLOCK, end = block_end(h, block);
    for (uint32_t at = base; at < end; at += WORTH_POOL)
        count_pool(h, at, HY_MIN(WORTH_POOL, end - at), &accesses[at - base], rule, gain);
}

/* A group as the pass saw it: pushed as a whole if it is still one, else its halves. */
static void record_group(struct block_pass *b, uint32_t head)
{
    struct history *h = b->h;
    uint32_t todo[HISTORY_ORDER + 1] = {head}; /* heads, the nearest last */
    unsigned n = 1;
    while (n > 0) {
        uint32_t at = todo[--n];
        unsigned order = order_at(h, at);
        struct observed o = look(b, at, 1u << order);
        if (!o.known)
            continue;
        if (o.differ) {
            split(h, at);
            todo[n++] = at + (1u << (order - 1));
            todo[n++] = at;
            continue;
        }
        b->stats->watched += o.watched;
        push(b, at, &o);
    }
}

/* Merge the group at `head` with its left neighbour while both are of one size and alike.
 * Returns the head of what it has become. */
static uint32_t merge_left(struct history *h, uint32_t head)
{
    for (;;) {
        unsigned order = order_at(h, head);
        uint32_t size = 1u << order;
        if (order == HISTORY_ORDER || !(head & size))
            return head;
        uint32_t left = head - size;
        struct page_record a = h->rec[left], b = h->rec[head];
        if (order_at(h, left) != order || a.passes != b.passes ||
            score_of(h, left) != score_of(h, head) ||
            ((a.state ^ b.state) & (HEAT_MASK | COOL_MASK | ON_PM)) != 0)
            return head;
        write_head(h, left, order + 1, a);
        head = left;
    }
}

void history_record(struct history *h, uint32_t block, const struct page_set *watched,
                    const struct page_seen *seen, unsigned rounds, struct pass_stats *stats)
{
    struct block_pass b = {.h = h,
                           .watched = watched,
                           .seen = seen,
                           .stats = stats,
                           .base = block * HISTORY_BLOCK,
                           .rounds = HY_MIN(HY_MAX(rounds, 1u), HISTORY_ROUNDS)};
    uint32_t end = block_end(h, block);
    for (uint32_t at = b.base; at < end;) {
        uint32_t n = 1u << order_at(h, at); /* before it is split */
        record_group(&b, at);
        at += n;
    }
    for (uint32_t at = b.base; at < end; at += 1u << order_at(h, at)) {
        unsigned order = order_at(h, at);
        at = merge_left(h, at);
        stats->groups += 1 - (uint64_t)(order_at(h, at) - order);
    }
}

/* --- moves ------------------------------------------------------------------ */

void history_cut(struct history *h, uint32_t page)
{
    if (page >= h->pages)
        return;
    for (uint32_t head = head_of(h, page); head != page; head = head_of(h, page))
        split(h, head);
}

enum rest_kind { MOVED, REFUSED, FOUND, HELD, PLACED };

static void rest(struct history *h, uint32_t first, uint32_t pages, enum rest_kind why,
                 enum hy_tier to)
{
    if (first >= h->pages)
        return;
    uint32_t end = first + HY_MIN(pages, h->pages - first);
    history_cut(h, first);
    history_cut(h, end);
    for (uint32_t at = first; at < end; at += 1u << order_at(h, at)) {
        struct page_record r = h->rec[at];
        /* One that nobody has seen in use only fills free DRAM: it may go again at once, and
         * that is no move undone. */
        bool fills = why == MOVED && to == HY_DRAM && r.passes == 0 && (r.state & HEAT_MASK) == 0;
        unsigned cool = r.state & COOL_MASK;
        if (why == HELD)
            cool = HY_MAX(cool, 1u << COOL_SHIFT);
        else if (why != PLACED) /* those may go at once */
            cool = fills || why == FOUND ? 1u << COOL_SHIFT : COOL_MASK;
        r.state = (uint8_t)((r.state & ~COOL_MASK) | cool);
        for (uint32_t i = at; h->count && i < at + (1u << order_at(h, at)); i++) {
            if (why == MOVED) { /* twice: it is back */
                h->count[i].moved = !h->count[i].moved;
                h->count[i].gone = false;
                h->map->owed += to == HY_DRAM ? 1 : -1;
            } else if (why == PLACED || (why == FOUND && tier_of(r) != to)) {
                leave(h, i, tier_of(r));
                if (why == PLACED)
                    come(h, i, to);
            }
        }
        if (why == MOVED || why == FOUND || why == PLACED)
            r.state = (uint8_t)((r.state & ~ON_PM) | (to == HY_PM ? ON_PM : 0));
        change(h, at, r);
    }
}

void history_moved(struct history *h, uint32_t first, uint32_t pages, enum hy_tier to)
{
    rest(h, first, pages, MOVED, to);
}

void history_found(struct history *h, uint32_t first, uint32_t pages, enum hy_tier on)
{
    rest(h, first, pages, FOUND, on);
}

void history_placed(struct history *h, uint32_t first, uint32_t pages, enum hy_tier on)
{
    rest(h, first, pages, PLACED, on);
}

void history_pin(struct history *h, uint32_t first, uint32_t pages)
{
    rest(h, first, pages, HELD, HY_TIERS);
}

void history_absent(struct history *h, uint32_t first, uint32_t pages, enum hy_tier home)
{
    /* Resting for one pass: it ends in the one that finds them in memory. */
    struct page_record r = {.state = (uint8_t)(1u << COOL_SHIFT | (home == HY_PM ? ON_PM : 0))};
    uint32_t end = first + HY_MIN(pages, h->pages - HY_MIN(first, h->pages));
    for (uint32_t i = first; h->count && i < end; i++) {
        if (h->count[i].moved)
            leave(h, i, tier_of(h->rec[head_of(h, i)]));
        h->count[i].gone = true;
    }
    if (first < end)
        assign(h, first, end, r, h->count ? h->count + first : NULL);
}

void history_present(struct history *h, uint32_t page)
{
    if (h->count && page < h->pages && h->count[page].gone)
        come(h, page, tier_of(h->rec[head_of(h, page)]));
}

void history_refused(struct history *h, uint32_t first, uint32_t pages)
{
    rest(h, first, pages, REFUSED, HY_TIERS);
}

void history_cool(struct history *h)
{
    for (uint32_t at = 0; at < h->pages; at += 1u << order_at(h, at)) {
        struct page_record r = h->rec[at];
        r.passes = 0;
        r.state &= (uint8_t) ~(HEAT_MASK | STABLE);
        count(h, at, 1u << order_at(h, at), -1);
        write_head(h, at, order_at(h, at), r);
        for (uint32_t i = 0; h->count && i < 1u << order_at(h, at); i++)
            h->count[at + i].mean = h->count[at + i].score = 0;
        count(h, at, 1u << order_at(h, at), 1);
    }
}
