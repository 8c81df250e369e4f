/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "decide/coverage.h"
#include "sys/os.h"

#define BLOCK_BYTES (HISTORY_BLOCK * HY_PAGE)

struct range {
    uintptr_t base;
    size_t bytes;
};

/* One block of the batch. By address: ranges shift in their table. */
struct slot {
    uintptr_t base;
    uint32_t pages;
    bool gone; /* unmapped since, or the source failed */
    struct page_set watched;
    struct page_seen seen[HISTORY_BLOCK]; /* of rounds; */
    struct page_seen told[HISTORY_BLOCK]; /* accesses told of, counts up to 255 */
};

static struct sampler {
    struct range range[SAMPLER_RANGES]; /* sorted */
    struct history history[SAMPLER_RANGES];
    struct slot slot[SAMPLER_BATCH];
    unsigned ranges, slots;
    struct heat_map map;
    struct coverage coverage;
    struct move_hand hand;
    const struct sampler_source *writes, *reads;
} * s; /* mapped when opened: a passive process has no use for it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- ranges -------------------------------------------------------------------------- */

/* The first range that ends above `at`. */
static unsigned find(uintptr_t at)
{
    unsigned lo = 0, hi = s->ranges;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (s->range[mid].base + s->range[mid].bytes <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static size_t record_bytes(size_t bytes)
{
    return hy_align_up(bytes / HY_PAGE * sizeof(struct page_record), HY_PAGE);
}

static int source_add(void *base, size_t bytes)
{
    int r = 0;
    if (s->writes && s->writes->add)
        r = s->writes->add(base, bytes);
    if (r == 0 && s->reads && s->reads->add)
        r = s->reads->add(base, bytes);
    return r;
}

static void source_remove(void *base, size_t bytes)
{
    if (s->writes && s->writes->remove)
        s->writes->remove(base, bytes);
    if (s->reads && s->reads->remove)
        s->reads->remove(base, bytes);
}

static int insert(uintptr_t base, size_t bytes, enum hy_tier tier)
{
    void *records;
    if (s->ranges == SAMPLER_RANGES)
        return -ENOSPC;
    if (bytes / HY_PAGE > UINT32_MAX / 2)
        return -E2BIG;
    int r = os_map_anon(record_bytes(bytes), &records);
    if (r != 0)
        return r;
    unsigned at = find(base), behind = s->ranges - at;
    memmove(&s->range[at + 1], &s->range[at], behind * sizeof(s->range[0]));
    memmove(&s->history[at + 1], &s->history[at], behind * sizeof(s->history[0]));
    s->range[at] = (struct range){base, bytes};
    history_init(&s->history[at], records, (uint32_t)(bytes / HY_PAGE), tier, &s->map);
    s->ranges++;
    return 0;
}

static void erase(unsigned at)
{
    unsigned behind = s->ranges - at - 1;
    void *records = s->history[at].rec;
    history_drop(&s->history[at]);
    os_unmap(records, record_bytes(s->range[at].bytes));
    memmove(&s->range[at], &s->range[at + 1], behind * sizeof(s->range[0]));
    memmove(&s->history[at], &s->history[at + 1], behind * sizeof(s->history[0]));
    s->ranges--;
}

/* A piece of a range that is left over keeps the tier that its first page had. */
static void keep_piece(uintptr_t from, uintptr_t to, enum hy_tier tier)
{
    if (from < to)
        (void)insert(from, to - from, tier); /* no room: it is forgotten */
}

static void remove_locked(uintptr_t from, uintptr_t to)
{
    unsigned at;
    while ((at = find(from)) < s->ranges && s->range[at].base < to) {
        struct range r = s->range[at];
        uintptr_t end = r.base + r.bytes;
        enum hy_tier left = history_group(&s->history[at], 0).tier, right = left;
        if (to < end)
            right = history_group(&s->history[at], (uint32_t)((to - r.base) / HY_PAGE)).tier;
        erase(at);
        keep_piece(r.base, from, left);
        keep_piece(to, end, right);
    }
    for (unsigned i = 0; i < s->slots; i++)
        s->slot[i].gone |=
            s->slot[i].base < to && s->slot[i].base + (size_t)s->slot[i].pages * HY_PAGE > from;
}

int sampler_add(void *base, size_t bytes, enum hy_tier tier)
{
    uintptr_t from = (uintptr_t)base;
    if (!s)
        return -ENODEV;
    if (bytes < HY_PAGE || (from | bytes) % HY_PAGE)
        return -EINVAL;
    pthread_mutex_lock(&lock);
    remove_locked(from, from + bytes);
    int r = source_add(base, bytes);
    if (r == 0 && (r = insert(from, bytes, tier)) != 0)
        source_remove(base, bytes);
    pthread_mutex_unlock(&lock);
    return r;
}

void sampler_remove(void *base, size_t bytes)
{
    uintptr_t from = (uintptr_t)base;
    if (!s)
        return;
    pthread_mutex_lock(&lock);
    bytes = hy_align_up(bytes, HY_PAGE);
    unsigned at = find(from);
    if (at < s->ranges && s->range[at].base < from + bytes) {
        source_remove(base, bytes);
        remove_locked(from, from + bytes);
    }
    pthread_mutex_unlock(&lock);
}

static uint64_t count_blocks(void)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->ranges; i++)
        n += history_blocks(&s->history[i]);
    return n;
}

uint64_t sampler_blocks(void)
{
    uint64_t n = 0;
    pthread_mutex_lock(&lock);
    if (s)
        n = count_blocks();
    pthread_mutex_unlock(&lock);
    return n;
}

/* --- a pass ------------------------------------------------------------------------------ */

static void choose(struct slot *slot, uint64_t number)
{
    unsigned at = 0;
    while (number >= history_blocks(&s->history[at]))
        number -= history_blocks(&s->history[at++]);
    uint32_t left = s->history[at].pages - (uint32_t)number * HISTORY_BLOCK;
    slot->base = s->range[at].base + number * BLOCK_BYTES;
    slot->pages = HY_MIN(left, HISTORY_BLOCK);
    slot->gone = false;
    memset(slot->seen, 0, sizeof(slot->seen));
    memset(slot->told, 0, sizeof(slot->told));
    history_watch(&s->history[at], (uint32_t)number, random_next(&s->coverage.random),
                  &slot->watched);
}

/* Numbers of the batch's blocks in order, so that its slots are sorted by address. */
static void draw(uint64_t *number, unsigned n, uint64_t all)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t drawn = coverage_next(&s->coverage, all);
        unsigned k = i;
        for (; k > 0 && number[k - 1] > drawn; k--)
            number[k] = number[k - 1];
        number[k] = drawn;
    }
}

static void each_source(unsigned slot, unsigned round, bool begin)
{
    const struct sampler_source *const both[] = {s->writes, s->reads};
    struct slot *b = &s->slot[slot];
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
    if (s->writes && s->writes->next_round)
        (void)s->writes->next_round();
    if (s->reads && s->reads->next_round)
        (void)s->reads->next_round();
}

unsigned sampler_begin(uint64_t blocks)
{
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    uint64_t all = s && s->writes ? count_blocks() : 0;
    if (all > 0) {
        uint64_t number[SAMPLER_BATCH];
        n = (unsigned)HY_MIN(HY_MIN(blocks, all), (uint64_t)SAMPLER_BATCH);
        draw(number, n, all);
        for (unsigned i = 0; i < n; i++)
            choose(&s->slot[i], number[i]);
        s->slots = n;
    }
    pthread_mutex_unlock(&lock);
    /* One at a time: add and remove, which the program waits for, come in between. */
    for (unsigned i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        each_source(i, 0, true);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    if (n)
        next_round();
    pthread_mutex_unlock(&lock);
    return n;
}

/* The slot of an address; NULL: not in this batch. */
static struct slot *slot_of(uintptr_t address)
{
    unsigned lo = 0, hi = s->slots;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (s->slot[mid].base + (size_t)s->slot[mid].pages * HY_PAGE <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->slots && s->slot[lo].base <= address ? &s->slot[lo] : NULL;
}

static void told(uintptr_t address, bool store)
{
    struct slot *b = slot_of(address);
    if (!b)
        return;
    struct page_seen *t = &b->told[(address - b->base) / HY_PAGE];
    uint8_t *n = store ? &t->writes : &t->reads;
    *n += *n < UINT8_MAX;
}

void sampler_round(unsigned round)
{
    for (unsigned i = 0; s && i < s->slots; i++) {
        pthread_mutex_lock(&lock);
        each_source(i, round, false);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    if (s && s->slots) {
        if (s->reads && s->reads->drain)
            (void)s->reads->drain(told);
        if (s->writes && s->writes->drain)
            (void)s->writes->drain(told);
        if (round + 1 < HISTORY_ROUNDS)
            next_round();
    }
    pthread_mutex_unlock(&lock);
}

/* How many accesses a page has that is always in use: twice the mean of those that have any.
 * Samples are few or many, depending on their period; what counts is the comparison. */
static uint64_t usual_count(void)
{
    uint64_t sum = 0, pages = 0;
    for (unsigned i = 0; i < s->slots; i++)
        for (uint32_t k = 0; k < s->slot[i].pages; k++) {
            struct page_seen t = s->slot[i].told[k];
            sum += HY_MAX(t.reads, t.writes);
            pages += (t.reads | t.writes) != 0;
        }
    return pages ? 2 * sum / pages : 0;
}

/* What was told, as rounds. Where writes are seen page by page, samples add the reads of pages
 * that are watched: of others nobody knows the writes. */
static void add_told(struct slot *b, uint64_t most)
{
    bool writes_told = s->writes->drain != NULL;
    for (uint32_t k = 0; k < b->pages; k++) {
        struct page_seen t = b->told[k];
        if (writes_told)
            page_set_add(&b->watched, k);
        if (!(t.reads | t.writes))
            continue;
        struct page_seen r = seen_from_counts(t.reads, t.writes, most);
        b->seen[k].reads |= r.reads;
        if (writes_told)
            b->seen[k].writes |= r.writes;
    }
}

void sampler_end(struct pass_stats *stats)
{
    memset(stats, 0, sizeof(*stats));
    pthread_mutex_lock(&lock);
    uint64_t most = s && s->slots && (s->writes->drain || s->reads) ? usual_count() : 0;
    for (unsigned i = 0; s && i < s->slots; i++) {
        struct slot *b = &s->slot[i];
        unsigned at = find(b->base);
        if (b->gone || at == s->ranges || s->range[at].base > b->base ||
            (b->base - s->range[at].base) % BLOCK_BYTES)
            continue;
        add_told(b, most);
        history_record(&s->history[at], (uint32_t)((b->base - s->range[at].base) / BLOCK_BYTES),
                       &b->watched, b->seen, HISTORY_ROUNDS, stats);
    }
    if (s)
        s->slots = 0;
    pthread_mutex_unlock(&lock);
}

/* --- moves ------------------------------------------------------------------------------- */

unsigned sampler_moves(const struct move_limits *l, uint64_t visits, struct page_move *list,
                       unsigned cap, uint64_t *ret_regret)
{
    struct move_plan plan;
    struct move move[64];
    unsigned n = 0;
    pthread_mutex_lock(&lock);
    if (s) {
        move_plan(&s->map, l, &plan);
        n = move_list(s->history, s->ranges, &plan, &s->hand, visits, move,
                      HY_MIN(cap, (unsigned)HY_ARRAY_SIZE(move)), ret_regret);
    }
    for (unsigned i = 0; i < n; i++)
        list[i] = (struct page_move){
            .base = (void *)(s->range[move[i].range].base + (size_t)move[i].first * HY_PAGE),
            .bytes = (size_t)move[i].pages * HY_PAGE,
            .to = move[i].to};
    pthread_mutex_unlock(&lock);
    return n;
}

void sampler_moved(void *base, size_t bytes, enum hy_tier to, bool moved)
{
    uintptr_t from = (uintptr_t)base;
    pthread_mutex_lock(&lock);
    unsigned at = s ? find(from) : 0;
    /* It may have been unmapped meanwhile. */
    if (s && at < s->ranges && s->range[at].base <= from) {
        uint32_t first = (uint32_t)((from - s->range[at].base) / HY_PAGE);
        if (moved)
            history_moved(&s->history[at], first, (uint32_t)(bytes / HY_PAGE), to);
        else
            history_refused(&s->history[at], first, (uint32_t)(bytes / HY_PAGE));
    }
    pthread_mutex_unlock(&lock);
}

void sampler_totals(uint64_t ret_pages[HY_TIERS][BANDS])
{
    memset(ret_pages, 0, HY_TIERS * sizeof(ret_pages[0]));
    pthread_mutex_lock(&lock);
    for (unsigned t = 0; s && t < HY_TIERS; t++)
        for (unsigned score = 0; score < SCORES; score++)
            ret_pages[t][score_band(score)] += s->map.movable[t][score];
    pthread_mutex_unlock(&lock);
}

/* --- life ---------------------------------------------------------------------------------- */

int sampler_open(const struct sampler_source *const *sources, const struct predictor *p,
                 uint64_t seed)
{
    const struct sampler_source *writes = NULL, *reads = NULL;
    void *m;
    for (; *sources; sources++) {
        bool wanted = (!writes && (*sources)->writes) || (!reads && (*sources)->reads);
        if (!wanted || (*sources)->open() != 0)
            continue;
        if (!writes && (*sources)->writes)
            writes = *sources;
        else
            reads = *sources;
    }
    int r = writes ? os_map_anon(sizeof(*s), &m) : -ENODEV;
    if (r != 0) {
        if (reads)
            reads->close();
        if (writes)
            writes->close();
        return r;
    }
    struct sampler *fresh = m;
    heat_map_init(&fresh->map, p);
    coverage_init(&fresh->coverage, seed);
    fresh->writes = writes;
    fresh->reads = reads;
    pthread_mutex_lock(&lock);
    s = fresh;
    pthread_mutex_unlock(&lock);
    return 0;
}

void sampler_close(void)
{
    pthread_mutex_lock(&lock);
    if (s) {
        if (s->writes)
            s->writes->close();
        if (s->reads)
            s->reads->close();
        while (s->ranges > 0)
            erase(s->ranges - 1);
        os_unmap(s, sizeof(*s));
        s = NULL;
    }
    pthread_mutex_unlock(&lock);
}

const char *sampler_source_name(bool writes)
{
    const char *name = NULL;
    pthread_mutex_lock(&lock);
    const struct sampler_source *of = !s ? NULL : writes ? s->writes : s->reads;
    if (of)
        name = of->name;
    else if (s && !writes && s->writes && s->writes->reads)
        name = s->writes->name;
    pthread_mutex_unlock(&lock);
    return name;
}

void sampler_prefork(void)
{
    pthread_mutex_lock(&lock);
}

void sampler_postfork(void)
{
    pthread_mutex_unlock(&lock);
}

int sampler_reopen(void)
{
    int r = 0;
    pthread_mutex_lock(&lock);
    if (s) {
        s->slots = 0;
        s->writes->close();
        if (s->reads)
            s->reads->close();
        r = s->writes->open();
        if (s->reads && s->reads->open() != 0)
            s->reads = NULL;
        for (unsigned i = 0; r == 0 && i < s->ranges; i++)
            if (source_add((void *)s->range[i].base, s->range[i].bytes) != 0)
                erase(i--); /* not in this process */
        if (r != 0)
            s->writes = NULL;
    }
    pthread_mutex_unlock(&lock);
    return r;
}
