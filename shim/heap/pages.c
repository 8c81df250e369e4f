/* SPDX-License-Identifier: BSD-2-Clause
 * Runs of granules. Free runs are clean (no memory behind them, read as zero) or dirty (still
 * resident); the two are kept and joined apart, so that what is known of a run stays true
 * (free_runs.c). Charged to the tier: spans in full, dirty runs but for their holes, large blocks
 * by their pages. */
#include <string.h>

#include "heap/altered.h"
#include "heap/free_runs.h"
#include "heap/parked.h"
#include "sys/os.h"

/* From the supplier at a time: a part of what was taken so far, within these bounds. */
#define CHUNK_GRANULES ((uint32_t)(HEAP_CHUNK / HEAP_GRANULE))
#define CHUNK_MIN      (4 * CHUNK_GRANULES)
#define CHUNK_MAX      (64 * CHUNK_GRANULES)
#define CHUNK_SHARE    8
#define TRIM_MIN       (16 * HY_KIB) /* behind a block: less is not worth a call */
#define TRIM_SHARE     4             /* and of a run that is used again, as it may be yet again */

static void note_peak(struct pages *p)
{
    uint64_t now = p->live_bytes + (free_resident(p) << HEAP_GRANULE_SHIFT);
    if (now > p->peak_bytes)
        p->peak_bytes = now;
}

/* Free granules at the end of what was taken, if the next chunk begins there. */
static uint32_t free_at_end(enum hy_tier t)
{
    struct pages *p = &hy_pages[t];
    uint32_t end = hy_hg.first[t] + (uint32_t)p->taken_granules;
    if (t != HY_DRAM || p->taken_granules == 0 || hy_hg.g[end - 1].state != RUN_CLEAN)
        return 0;
    return hy_hg.g[end - 1].len;
}

static void give_all_back(enum hy_tier t)
{
    parked_drain(t);
    free_purge_down_to(t, 0);
}

/* Under a limit of the address space everything that is free gives its addresses back: for
 * larger blocks, and for thread stacks, libraries, the next allocator. */
static void become_tight(enum hy_tier t)
{
    struct pages *p = &hy_pages[t];
    p->tight = true;
    give_all_back(t);
    for (unsigned b = 0; b < RUN_BINS; b++)
        for (uint32_t i = p->clean.head[b]; i != NO_GRANULE; i = hy_hg.g[i].next)
            (void)hy_hg.host.release(t, granule_addr(i),
                                     (size_t)hy_hg.g[i].len << HEAP_GRANULE_SHIFT);
    (void)hy_hg.host.release(t, NULL, 0);
}

/* DRAM alone tells, under its lock: PM may only not be ready yet. */
static void note_tight(void)
{
    if (hy_pages[HY_DRAM].tight || !hy_hg.host.release)
        return;
    become_tight(HY_DRAM);
    hy_lock_take(&hy_pages[HY_PM].lock);
    become_tight(HY_PM);
    hy_lock_release(&hy_pages[HY_PM].lock);
}

/* Clean memory of a tight heap has no addresses, also what has just been taken: a run that is part
 * of the one and part of the other would be mapped from its beginning, and its end in vain. */
static void *take_little(enum hy_tier t, uint32_t len, uint32_t *ret_n)
{
    if (t == HY_DRAM)
        note_tight();
    *ret_n = hy_align_up(len - HY_MIN(free_at_end(t), len), CHUNK_GRANULES);
    size_t bytes = (size_t)*ret_n << HEAP_GRANULE_SHIFT;
    void *base = bytes ? hy_hg.host.take(t, bytes) : NULL;
    if (base && hy_pages[t].tight)
        (void)hy_hg.host.release(t, base, bytes);
    return base;
}

static bool grow(enum hy_tier t, uint32_t len)
{
    struct pages *p = &hy_pages[t];
    if (heap_is_confined())
        return false;
    uint32_t share = (uint32_t)HY_MIN(p->taken_granules / CHUNK_SHARE, (uint64_t)CHUNK_MAX);
    uint32_t least = hy_align_up(len, CHUNK_GRANULES);
    uint32_t n = heap_is_all_resident()
                     ? least
                     : hy_align_up(HY_MAX(len, HY_MAX(share, CHUNK_MIN)), CHUNK_GRANULES);
    void *base = p->tight ? NULL : hy_hg.host.take(t, (size_t)n << HEAP_GRANULE_SHIFT);
    if (!base && !p->tight && n > least)
        base = hy_hg.host.take(t, (size_t)(n = least) << HEAP_GRANULE_SHIFT);
    if (!base) /* the address space is short: it is added to what is there */
        base = take_little(t, len, &n);
    if (!base || !tables_commit(t, granule_of(base), n))
        return false;
    p->taken_granules += n;
    free_add_clean(t, granule_of(base), n);
    return true;
}

static bool has_room(enum hy_tier t, uint64_t bytes)
{
    return !hy_hg.host.room || hy_hg.host.room(t) >= bytes;
}

/* Find a run of at least `len`; ret_kind is the set it was taken from. Charges
 * `bytes` for memory that was not charged yet. */
static uint32_t find_run(enum hy_tier t, uint32_t len, uint64_t bytes, enum pages_from from,
                         enum run_state *ret_kind)
{
    struct pages *p = &hy_pages[t];
    bool fresh = from == PAGES_CLEAN || (from == PAGES_FRESH && has_room(t, bytes));
    uint32_t i = fresh ? NO_GRANULE : runs_find(&p->dirty, len);
    if (i != NO_GRANULE) {
        *ret_kind = RUN_DIRTY;
        return i;
    }
    if (!hy_hg.host.charge(t, bytes, false)) {
        give_all_back(t); /* what lies free here is charged as well */
        if (!hy_hg.host.charge(t, bytes, from == PAGES_FORCED))
            return NO_GRANULE;
    }
    *ret_kind = RUN_CLEAN;
    if (!fresh)
        keep_note_fresh(&p->keep, len, live_pages(p));
    i = runs_find(&p->clean, len);
    if (i == NO_GRANULE && grow(t, len))
        i = runs_find(&p->clean, len);
    if (i == NO_GRANULE) { /* range used up: join what is dirty with what is clean */
        give_all_back(t);
        i = runs_find(&p->clean, len);
    }
    if (i == NO_GRANULE)
        free_discharge(t, bytes);
    return i;
}

/* Clean memory is about to be used. */
static bool restore(enum hy_tier t, uint32_t i, uint32_t len)
{
    return !hy_hg.host.restore || (t == HY_DRAM && !hy_pages[t].tight) ||
           hy_hg.host.restore(t, granule_addr(i), (size_t)len << HEAP_GRANULE_SHIFT);
}

/* Pages of a large block that lie on PM; only of a run without memory. NULL: the last. */
struct part {
    uint32_t away;
    const uint8_t *level;
};

static bool send_away(uint32_t i, uint64_t size, const struct part *pm)
{
    return pm->away == 0 || hy_hg.host.split(granule_addr(i), size, pm->away * HY_PAGE, pm->level);
}

static void call_back(uint32_t i, struct granule *g)
{
    hy_hg.host.join(granule_addr(i));
    g->size -= g->away * HY_PAGE;
    g->away = 0;
}

/* What a live run is charged: spans in full, large blocks by their pages. */
static uint64_t run_bytes(const struct granule *g)
{
    return g->state == RUN_LARGE ? g->size - g->away * HY_PAGE + g->beyond * HY_PAGE
                                 : (uint64_t)g->len << HEAP_GRANULE_SHIFT;
}

/* A block of `size` bytes in a run of which `had` are in memory: what it does not need goes back if
 * that is `least` or more, and stays charged otherwise. Returns the pages that stay. */
static uint32_t trim_tail(enum hy_tier t, uint32_t i, uint64_t size, uint64_t had, uint64_t least)
{
    if (had <= size)
        return 0;
    if (had - size >= HY_MAX(least, TRIM_MIN) && hy_hg.host.trim &&
        hy_hg.host.trim(t, (char *)granule_addr(i) + size, had - size))
        return 0;
    return (uint32_t)((had - size) / HY_PAGE);
}

/* Under the lock. */
static uint32_t alloc_run(enum hy_tier t, uint32_t len, uint32_t align, uint64_t size,
                          struct part pm, enum pages_from from, bool *ret_zeroed)
{
    struct pages *p = &hy_pages[t];
    struct granule *g = hy_hg.g;
    enum run_state kind, as = size ? RUN_LARGE : RUN_SPAN;
    uint64_t full = (uint64_t)len << HEAP_GRANULE_SHIFT, bytes = size ? size : full;
    uint32_t i = find_run(t, len + align - 1, bytes - pm.away * HY_PAGE, from, &kind), skip = 0;

    if (i != NO_GRANULE) {
        skip = (uint32_t)(-((hy_heap.base >> HEAP_GRANULE_SHIFT) + i) & (align - 1));
        if (kind == RUN_CLEAN && (!restore(t, i + skip, len) || !send_away(i + skip, size, &pm))) {
            free_discharge(t, bytes - pm.away * HY_PAGE);
            i = NO_GRANULE;
        }
    }
    if (i != NO_GRANULE) {
        uint32_t total = g[i].len, dirty = g[i].beyond, holes = free_cut(t, i, skip, len);
        mark_run(i + skip, len, as);
        i += skip;
        g[i].beyond = 0;
        if (kind == RUN_DIRTY) { /* was charged in full */
            uint64_t had = dirty && total == len ? dirty * HY_PAGE : full;
            g[i].beyond = size ? trim_tail(t, i, bytes, had, full / TRIM_SHARE) : 0;
            free_discharge(t, full - bytes - g[i].beyond * HY_PAGE);
        }
        g[i].size = bytes;
        g[i].away = pm.away;
        g[i].striped = pm.level != NULL;
        g[i].site = 0;
        g[i].weight = 1;
        p->live_bytes += run_bytes(&g[i]);
        p->spans += !size;
        p->large += size != 0;
        p->large_allocs += size != 0;
        note_peak(p);
        *ret_zeroed = kind == RUN_CLEAN;
        free_note_fresh(t, kind == RUN_CLEAN ? len : holes);
    }
    return i;
}

uint32_t pages_alloc(enum hy_tier t, uint32_t len, uint32_t align, uint64_t size,
                     enum pages_from from, bool *ret_zeroed)
{
    hy_lock_take(&hy_pages[t].lock);
    uint32_t i = alloc_run(t, len, align, size, (struct part){0, NULL}, from, ret_zeroed);
    hy_lock_release(&hy_pages[t].lock);
    return i;
}

uint32_t pages_alloc_split(uint32_t len, uint32_t align, uint64_t size, uint32_t away,
                           const uint8_t *level, bool *ret_zeroed)
{
    hy_lock_take(&hy_pages[HY_DRAM].lock);
    uint32_t i =
        alloc_run(HY_DRAM, len, align, size, (struct part){away, level}, PAGES_CLEAN, ret_zeroed);
    hy_lock_release(&hy_pages[HY_DRAM].lock);
    return i;
}

void pages_set_size(uint32_t head, uint64_t size)
{
    enum hy_tier t = granule_tier(head);
    struct granule *g = &hy_hg.g[head];
    hy_lock_take(&hy_pages[t].lock);
    uint64_t before = run_bytes(g);
    uint64_t kept = HY_MIN(before, (uint64_t)g->len << HEAP_GRANULE_SHIFT);
    g->size = size;
    g->beyond = trim_tail(t, head, size, kept, 0);
    uint64_t now = run_bytes(g);
    hy_pages[t].live_bytes += now - before;
    if (now < before)
        free_discharge(t, before - now);
    else if (now > before)
        (void)hy_hg.host.charge(t, now - before, true);
    hy_lock_release(&hy_pages[t].lock);
}

void pages_free_locked(enum hy_tier t, uint32_t head)
{
    struct pages *p = &hy_pages[t];
    struct granule *g = &hy_hg.g[head];

    /* Of what was striped, it is not the first pages that are in memory: it is not kept. */
    bool parted = g->state == RUN_LARGE && g->away, scattered = parted && g->striped;
    bool altered = run_is_altered(head);
    if (parted)
        call_back(head, g);
    if (HY_UNLIKELY(altered) && !altered_renew(t, head, g->len))
        return;
    uint64_t bytes = run_bytes(g);
    if (g->state == RUN_LARGE)
        p->large--;
    else
        p->spans--;
    p->live_bytes -= bytes;
    if (HY_UNLIKELY(altered))
        free_add_renewed(t, head, g->len, bytes);
    else if (!scattered || !free_add_purged(t, head, g->len, bytes))
        free_add(t, head, g->len, bytes);
}

void pages_free(uint32_t head)
{
    enum hy_tier t = granule_tier(head);
    uint32_t len = hy_hg.g[head].len;

    hy_lock_take(&hy_pages[t].lock);
    pages_free_locked(t, head);
    if (parked_is_for(len))
        parked_widen(t, len);
    hy_lock_release(&hy_pages[t].lock);
}

void pages_shrink(uint32_t head, uint32_t len)
{
    enum hy_tier t = granule_tier(head);
    struct granule *g = &hy_hg.g[head];

    hy_lock_take(&hy_pages[t].lock);
    if (len < g->len) {
        uint32_t rest = g->len - len;
        mark_run(head, len, RUN_LARGE);
        /* Charged with the block so far as its size said; the caller sets the
         * new size next, so the rest comes in as not charged. */
        free_add(t, head + len, rest, 0);
    }
    hy_lock_release(&hy_pages[t].lock);
}

bool pages_grow(uint32_t head, uint32_t len)
{
    enum hy_tier t = granule_tier(head);
    struct pages *p = &hy_pages[t];
    struct granule *g = hy_hg.g;
    bool ok = false;

    hy_lock_take(&p->lock);
    uint32_t have = g[head].len, need = len - have, next = head + have;
    if (next < hy_hg.first[t] + hy_hg.count[t] &&
        (g[next].state == RUN_CLEAN || g[next].state == RUN_DIRTY) && g[next].len >= need &&
        (g[next].state == RUN_DIRTY || restore(t, next, need))) {
        enum run_state kind = (enum run_state)g[next].state;
        uint64_t bytes = (uint64_t)need << HEAP_GRANULE_SHIFT;
        /* The caller charges by size (pages_set_size); here only ask. */
        if (hy_hg.host.charge(t, bytes, false)) {
            free_discharge(t, bytes);
            free_cut(t, next, 0, need);
            if (kind == RUN_DIRTY)
                free_discharge(t, bytes);
            mark_run(head, len, RUN_LARGE);
            ok = true;
        }
    }
    hy_lock_release(&p->lock);
    return ok;
}

void pages_stats(enum hy_tier t, struct heap_stats *ret)
{
    struct pages *p = &hy_pages[t];
    hy_lock_take(&p->lock);
    uint64_t parked, parked_pages;
    parked_count(t, &parked, &parked_pages);
    ret->live_bytes = p->live_bytes - (parked_pages << HEAP_GRANULE_SHIFT);
    ret->dirty_bytes = (free_resident(p) + parked_pages) << HEAP_GRANULE_SHIFT;
    ret->peak_bytes = p->peak_bytes;
    ret->spans = p->spans;
    ret->large_blocks = p->large - parked;
    ret->large_allocs = p->large_allocs;
    ret->idle_pages = p->near + p->holes;
    ret->retaken_pages = p->retaken;
    hy_lock_release(&p->lock);
}

void pages_init(void)
{
    for (int t = 0; t < HY_TIERS; t++) {
        tables_init((enum hy_tier)t);
        memset(hy_pages[t].clean.head, 0xff, sizeof(hy_pages[t].clean.head));
        memset(hy_pages[t].dirty.head, 0xff, sizeof(hy_pages[t].dirty.head));
    }
}

int heap_under_lock(enum hy_tier t, char *base, size_t bytes, bool keep,
                    int (*fn)(void *base, size_t bytes, bool keep))
{
    char *from = granule_addr(hy_hg.first[t]);
    char *end = from + ((size_t)hy_hg.count[t] << HEAP_GRANULE_SHIFT);
    from = HY_MAX(from, base);
    end = HY_MIN(end, base + bytes);
    if (from >= end)
        return 0;
    hy_lock_take(&hy_pages[t].lock);
    int e = fn(from, (size_t)(end - from), keep);
    hy_lock_release(&hy_pages[t].lock);
    return e;
}

void pages_prefork(void)
{
    for (int t = 0; t < HY_TIERS; t++)
        hy_lock_prefork(&hy_pages[t].lock);
}

void pages_postfork(void)
{
    for (int t = HY_TIERS; t-- > 0;)
        hy_lock_postfork(&hy_pages[t].lock);
}

bool pages_is_valid(enum hy_tier t)
{
    hy_lock_take(&hy_pages[t].lock);
    bool ok = runs_are_valid(&hy_pages[t].clean, RUN_CLEAN) &&
              runs_are_valid(&hy_pages[t].dirty, RUN_DIRTY);
    hy_lock_release(&hy_pages[t].lock);
    return ok;
}
