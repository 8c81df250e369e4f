/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/sampler.h"

#include <string.h>

#include "pages/rules/takeback.h"
#include "pages/sampler_internal.h"

static uint64_t count_blocks(void)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < hy_sampler->ranges; i++)
        n += history_blocks(&hy_sampler->history[i]);
    return n;
}

uint64_t sampler_blocks(void)
{
    uint64_t n = 0;
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler)
        n = count_blocks();
    hy_lock_release(&hy_sampler_lock);
    return n;
}

/* --- a pass ------------------------------------------------------------------------------ */

static void choose(struct slot *slot, uint64_t number)
{
    unsigned at = 0;
    while (number >= history_blocks(&hy_sampler->history[at]))
        number -= history_blocks(&hy_sampler->history[at++]);
    uint32_t left = hy_sampler->history[at].pages - (uint32_t)number * HISTORY_BLOCK;
    slot->base = hy_sampler->range[at].base + number * BLOCK_BYTES;
    slot->pages = HY_MIN(left, HISTORY_BLOCK);
    slot->gone = false;
    memset(slot->seen, 0, sizeof(slot->seen));
    memset(slot->accesses, 0, sizeof(slot->accesses));
    history_watch(&hy_sampler->history[at], (uint32_t)number,
                  random_next(&hy_sampler->coverage.random), &slot->watched);
}

/* Numbers of the batch's blocks in order, so that its slots are sorted by address. */
static void draw(uint64_t *number, unsigned n, uint64_t all)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t drawn = coverage_next(&hy_sampler->coverage, all);
        unsigned k = i;
        for (; k > 0 && number[k - 1] > drawn; k--)
            number[k] = number[k - 1];
        number[k] = drawn;
    }
}

static void each_source(unsigned slot, unsigned round, bool begin)
{
    const struct sampler_source *const both[] = {hy_sampler->writes, hy_sampler->reads};
    struct slot *b = &hy_sampler->slot[slot];
    for (unsigned i = 0; i < HY_ARRAY_SIZE(both) && !b->gone; i++) {
        int r = 0;
        if (both[i] && begin && both[i]->watch)
            r = both[i]->watch((void *)b->base, b->pages, &b->watched);
        if (both[i] && !begin && both[i]->look)
            r = both[i]->look((void *)b->base, b->pages, &b->watched, round, b->seen);
        b->gone = r < 0;
    }
}

static void next_round(void)
{
    if (hy_sampler->writes && hy_sampler->writes->next_round)
        (void)hy_sampler->writes->next_round();
    if (hy_sampler->reads && hy_sampler->reads->next_round)
        (void)hy_sampler->reads->next_round();
}

/* What was told before the look began: of pages that have moved since it would tell what they were
 * chosen by. */
static void drop_access(uintptr_t address, bool store)
{
    (void)address;
    (void)store;
}

unsigned sampler_begin(uint64_t blocks)
{
    unsigned n = 0;
    hy_lock_take(&hy_sampler_lock);
    uint64_t all = hy_sampler && hy_sampler->writes ? count_blocks() : 0;
    if (all > 0) {
        uint64_t number[SAMPLER_BATCH];
        sampler_renew_reads();
        n = (unsigned)HY_MIN(HY_MIN(blocks, all), (uint64_t)SAMPLER_BATCH);
        draw(number, n, all);
        for (unsigned i = 0; i < n; i++)
            choose(&hy_sampler->slot[i], number[i]);
        hy_sampler->slots = n;
        hy_sampler->counted = 0;
        if (sampler_counts())
            (void)hy_sampler->writes->drain(drop_access);
    }
    hy_lock_release(&hy_sampler_lock);
    /* One at a time: add and remove, which the program waits for, come in between. */
    for (unsigned i = 0; i < n; i++) {
        hy_lock_take(&hy_sampler_lock);
        if (!hy_sampler->slot[i].gone)
            sampler_place_block(hy_sampler->slot[i].base, hy_sampler->slot[i].pages);
        each_source(i, 0, true);
        hy_lock_release(&hy_sampler_lock);
    }
    hy_lock_take(&hy_sampler_lock);
    if (n)
        next_round();
    hy_lock_release(&hy_sampler_lock);
    return n;
}

/* Of the first n slots that of an address; NULL: not in this batch. */
static struct slot *slot_among(unsigned n, uintptr_t address)
{
    unsigned lo = 0, hi = n;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (hy_sampler->slot[mid].base + (size_t)hy_sampler->slot[mid].pages * HY_PAGE <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && hy_sampler->slot[lo].base <= address ? &hy_sampler->slot[lo] : NULL;
}

static void accesses(uintptr_t address, bool store)
{
    struct slot *b = slot_among(hy_sampler->slots, address);
    if (!b)
        return;
    struct page_seen *t = &b->accesses[(address - b->base) / HY_PAGE];
    uint8_t *n = store ? &t->writes : &t->reads;
    *n += *n < UINT8_MAX;
}

void sampler_round(unsigned round)
{
    for (unsigned i = 0; hy_sampler && i < hy_sampler->slots; i++) {
        hy_lock_take(&hy_sampler_lock);
        each_source(i, round, false);
        hy_lock_release(&hy_sampler_lock);
    }
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler && hy_sampler->slots) {
        if (hy_sampler->reads && hy_sampler->reads->drain)
            (void)hy_sampler->reads->drain(accesses);
        if (hy_sampler->writes && hy_sampler->writes->drain)
            (void)hy_sampler->writes->drain(accesses);
        if (round + 1 < HISTORY_ROUNDS)
            next_round();
    }
    hy_lock_release(&hy_sampler_lock);
}

/* How many accesses a page has that is always in use: twice the mean of those that have any.
 * Samples are few or many, depending on their period; what counts is the comparison. */
static uint64_t usual_count(void)
{
    uint64_t sum = 0, pages = 0;
    for (unsigned i = 0; i < hy_sampler->slots; i++)
        for (uint32_t k = 0; k < hy_sampler->slot[i].pages; k++) {
            struct page_seen t = hy_sampler->slot[i].accesses[k];
            sum += HY_MAX(t.reads, t.writes);
            pages += (t.reads | t.writes) != 0;
        }
    return pages ? 2 * sum / pages : 0;
}

/* What was told, as rounds. Where writes are seen page by page, samples add the reads of pages
 * that are watched: of others nobody knows the writes. */
static void add_accesses(struct slot *b, uint64_t most)
{
    bool writes_sampled = hy_sampler->writes->drain != NULL;
    for (uint32_t k = 0; k < b->pages; k++) {
        struct page_seen t = b->accesses[k];
        if (writes_sampled)
            page_set_add(&b->watched, k);
        if (!(t.reads | t.writes))
            continue;
        struct page_seen r = seen_from_counts(t.reads, t.writes, most);
        b->seen[k].reads |= r.reads;
        if (writes_sampled)
            b->seen[k].writes |= r.writes;
    }
}

/* What is not in memory cannot move, and makes no room either. */
static void note_absent(unsigned at, const struct slot *b, struct pass_stats *stats)
{
    struct page_set in;
    uint32_t first = (uint32_t)((b->base - hy_sampler->range[at].base) / HY_PAGE);
    if (!hy_sampler->writes->present ||
        hy_sampler->writes->present((void *)b->base, b->pages, &in) != 0)
        return;
    for (uint32_t i = 0; i < b->pages;) {
        uint32_t from = i;
        while (i < b->pages && !page_set_has(&in, i))
            i++;
        stats->present += i == from;
        if (i > from)
            history_absent(&hy_sampler->history[at], first + from, i - from,
                           hy_sampler->range[at].home);
        else
            history_present(&hy_sampler->history[at], first + i++);
    }
}

void sampler_end(struct pass_stats *stats)
{
    memset(stats, 0, sizeof(*stats));
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler) {
        hy_sampler->gain = 0;
        hy_sampler->map.foretold = (struct worth_foretold){0};
    }
    uint64_t most =
        hy_sampler && hy_sampler->slots && (hy_sampler->writes->drain || hy_sampler->reads)
            ? usual_count()
            : 0;
    for (unsigned i = 0; hy_sampler && i < hy_sampler->slots; i++) {
        struct slot *b = &hy_sampler->slot[i];
        unsigned at = sampler_find(b->base);
        if (b->gone || at == hy_sampler->ranges || hy_sampler->range[at].base > b->base ||
            (b->base - hy_sampler->range[at].base) % BLOCK_BYTES)
            continue;
        add_accesses(b, most);
        if (sampler_counts() && hy_sampler->rule.passes > 0)
            history_count(&hy_sampler->history[at],
                          (uint32_t)((b->base - hy_sampler->range[at].base) / BLOCK_BYTES),
                          b->accesses, &hy_sampler->rule, &hy_sampler->gain);
        history_record(&hy_sampler->history[at],
                       (uint32_t)((b->base - hy_sampler->range[at].base) / BLOCK_BYTES),
                       &b->watched, b->seen, HISTORY_ROUNDS, stats);
        note_absent(at, b, stats);
    }
    if (hy_sampler) {
        hy_sampler->counted = hy_sampler->slots;
        hy_sampler->slots = 0;
    }
    hy_lock_release(&hy_sampler_lock);
}

void sampler_price(const struct worth_rule *rule)
{
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler)
        hy_sampler->rule = *rule;
    hy_lock_release(&hy_sampler_lock);
}

int64_t sampler_gain(void)
{
    hy_lock_take(&hy_sampler_lock);
    int64_t gain = hy_sampler ? hy_sampler->gain : 0;
    hy_lock_release(&hy_sampler_lock);
    return gain;
}

struct worth_foretold sampler_foretold(void)
{
    hy_lock_take(&hy_sampler_lock);
    struct worth_foretold f = hy_sampler ? hy_sampler->map.foretold : (struct worth_foretold){0};
    hy_lock_release(&hy_sampler_lock);
    return f;
}

unsigned sampler_period(void)
{
    hy_lock_take(&hy_sampler_lock);
    unsigned period = hy_sampler && hy_sampler->writes && hy_sampler->writes->drain
                          ? hy_sampler->writes->period
                          : 0;
    hy_lock_release(&hy_sampler_lock);
    return period;
}

bool sampler_accesses(const void *base, size_t bytes, uint64_t *sum)
{
    uintptr_t at = (uintptr_t)base, end = at + bytes;
    bool all = true;
    hy_lock_take(&hy_sampler_lock);
    for (; all && at < end; at += HY_PAGE) {
        struct slot *b = hy_sampler ? slot_among(hy_sampler->counted, at) : NULL;
        all = b && !b->gone;
        if (all)
            *sum += b->accesses[(at - b->base) / HY_PAGE].reads +
                    b->accesses[(at - b->base) / HY_PAGE].writes;
    }
    hy_lock_release(&hy_sampler_lock);
    return all;
}

/* --- moves ------------------------------------------------------------------------------- */

static void to_addresses(const struct move *move, unsigned n, struct page_move *list)
{
    for (unsigned i = 0; i < n; i++)
        list[i] = (struct page_move){.base = (void *)(hy_sampler->range[move[i].range].base +
                                                      (size_t)move[i].first * HY_PAGE),
                                     .bytes = (size_t)move[i].pages * HY_PAGE,
                                     .to = move[i].to};
}

unsigned sampler_moves(const struct move_limits *l, uint64_t visits, struct page_move *list,
                       unsigned cap, uint64_t *ret_regret)
{
    struct move_plan plan;
    struct move move[64];
    unsigned n = 0;
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler) {
        move_plan(&hy_sampler->map, l, &plan);
        n = move_list(hy_sampler->history, hy_sampler->ranges, &plan, &hy_sampler->hand, visits,
                      move, HY_MIN(cap, (unsigned)HY_ARRAY_SIZE(move)), ret_regret);
    }
    to_addresses(move, n, list);
    hy_lock_release(&hy_sampler_lock);
    return n;
}

unsigned sampler_takeback(struct page_move *list, unsigned cap, uint64_t *ret_pairs)
{
    struct move move[64];
    unsigned n = 0;
    if (ret_pairs)
        *ret_pairs = 0;
    hy_lock_take(&hy_sampler_lock);
    if (hy_sampler)
        n = takeback_list(hy_sampler->history, hy_sampler->ranges, move,
                          HY_MIN(cap, (unsigned)HY_ARRAY_SIZE(move)), ret_pairs);
    to_addresses(move, n, list);
    hy_lock_release(&hy_sampler_lock);
    return n;
}

bool sampler_all_on(const void *base, size_t bytes, enum hy_tier t)
{
    uintptr_t from = (uintptr_t)base;
    hy_lock_take(&hy_sampler_lock);
    unsigned at = hy_sampler ? sampler_find(from) : 0;
    bool all = hy_sampler && at < hy_sampler->ranges && hy_sampler->range[at].base <= from;
    uint32_t page = all ? (uint32_t)((from - hy_sampler->range[at].base) / HY_PAGE) : 0;
    uint64_t end = page + bytes / HY_PAGE;
    all = all && end <= hy_sampler->history[at].pages;
    while (all && page < end) {
        struct page_group g = history_group(&hy_sampler->history[at], page);
        all = g.tier == t;
        page = g.first + g.pages;
    }
    hy_lock_release(&hy_sampler_lock);
    return all;
}

void sampler_moved(void *base, size_t bytes, enum hy_tier to, enum sampler_outcome o)
{
    uintptr_t from = (uintptr_t)base;
    hy_lock_take(&hy_sampler_lock);
    unsigned at = hy_sampler ? sampler_find(from) : 0;
    /* It may have been unmapped meanwhile. */
    if (hy_sampler && at < hy_sampler->ranges && hy_sampler->range[at].base <= from) {
        struct history *h = &hy_sampler->history[at];
        uint32_t first = (uint32_t)((from - hy_sampler->range[at].base) / HY_PAGE);
        uint32_t pages = (uint32_t)(bytes / HY_PAGE);
        if (o == SAMPLER_MOVED)
            history_moved(h, first, pages, to);
        else if (o == SAMPLER_SERVED)
            history_found(h, first, pages, to);
        else
            history_refused(h, first, pages);
    }
    hy_lock_release(&hy_sampler_lock);
}

void sampler_cool(void)
{
    bool more = true;
    /* One at a time, as others wait. */
    for (unsigned i = 0; more; i++) {
        hy_lock_take(&hy_sampler_lock);
        more = hy_sampler && i < hy_sampler->ranges;
        if (more)
            history_cool(&hy_sampler->history[i]);
        hy_lock_release(&hy_sampler_lock);
    }
}
