/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap/free_runs.h"

#include "heap/parked.h"

struct pages hy_pages[HY_TIERS];
/* Others have a use for what is free. */
static enum heap_dram dram;
/* What was found when DRAM was short the last time; and the pages that the kernel still has. */
static enum heap_dram when_short = HEAP_DRAM_SHORT;
static int64_t dram_left = INT64_MAX;

/* What is known of a free run: as in struct granule. */
struct free_run {
    uint8_t state;
    uint16_t age;
    uint32_t len, near, holes;
};

bool heap_dram_is_short(void)
{
    return __atomic_load_n(&dram, __ATOMIC_RELAXED) >= HEAP_DRAM_CHEAP;
}

static struct run_set *set_of(struct pages *p, uint8_t state)
{
    return state == RUN_DIRTY ? &p->dirty : &p->clean;
}

static inline void enter(struct pages *p, uint32_t i, struct free_run run)
{
    struct granule *g = &hy_hg.g[i];
    mark_run(i, run.len, (enum run_state)run.state);
    g->age = run.age;
    g->beyond = 0;
    g->near = run.near;
    g->holes = run.holes;
    runs_insert(set_of(p, g->state), i);
    p->near += g->near;
    p->holes += g->holes;
}

static void leave(struct pages *p, uint32_t i)
{
    const struct granule *g = &hy_hg.g[i];
    runs_remove(set_of(p, g->state), i);
    p->near -= g->near;
    p->holes -= g->holes;
}

/* Put [i, i+run.len) on a free set, joined with neighbours of the same kind; its first granule. */
static uint32_t put(enum hy_tier t, uint32_t i, struct free_run run)
{
    struct pages *p = &hy_pages[t];
    const struct granule *g = hy_hg.g;
    uint32_t lo = hy_hg.first[t], hi = lo + hy_hg.count[t], other[2], n = 0;

    if (i > lo && g[i - 1].state == run.state)
        other[n++] = i - g[i - 1].len;
    if (i + run.len < hi && g[i + run.len].state == run.state)
        other[n++] = i + run.len;
    while (n-- > 0) {
        const struct granule *o = &g[other[n]];
        leave(p, other[n]);
        i = HY_MIN(i, other[n]);
        run.len += o->len;
        run.near += o->near;
        run.holes += o->holes;
    }
    run.age = p->tick;
    enter(p, i, run);
    return i;
}

void free_add_clean(enum hy_tier t, uint32_t i, uint32_t len)
{
    (void)put(t, i, (struct free_run){.state = RUN_CLEAN, .len = len});
}

void free_discharge(enum hy_tier t, uint64_t bytes)
{
    if (bytes)
        hy_hg.host.discharge(t, bytes);
}

static void charge_in_any_case(enum hy_tier t, uint64_t bytes)
{
    if (bytes && !hy_hg.host.charge(t, bytes, false))
        (void)hy_hg.host.charge(t, bytes, true);
}

/* What is left on either side of the part that was taken. */
static void enter_rest(struct pages *p, uint32_t i, struct free_run run, uint32_t skip,
                       uint32_t len)
{
    uint32_t behind = run.len - skip - len, holes = run.holes;
    struct free_run rest = run;

    rest.len = behind;
    rest.near = HY_MIN(run.near, behind);
    rest.holes = HY_MIN(holes, behind);
    if (behind)
        enter(p, i + skip + len, rest);
    rest.len = skip;
    rest.holes = holes - rest.holes;
    rest.near = HY_MIN(run.near, skip);
    if (skip)
        enter(p, i, rest);
}

uint32_t free_cut(enum hy_tier t, uint32_t i, uint32_t skip, uint32_t len)
{
    struct pages *p = &hy_pages[t];
    const struct granule *g = &hy_hg.g[i];
    struct free_run run = {g->state, g->age, g->len, g->near, g->holes};
    /* Where the holes are is not known: as many as can be are in the part that is taken, as what
     * is charged must not be less than what is there. */
    uint32_t taken = HY_MIN(run.holes, len), left = run.len - len;

    leave(p, i);
    run.holes -= taken;
    p->retaken += taken + run.near - HY_MIN(run.near, left);
    if (taken)
        keep_note_fresh(&p->keep_near, taken, live_pages(p));
    if (len < run.len)
        enter_rest(p, i, run, skip, len);
    if (taken)
        charge_in_any_case(t, (uint64_t)taken << HEAP_GRANULE_SHIFT);
    return taken;
}

/* Memory goes back to the system, and its addresses where they are short. 0 or -errno. */
static int give_back(enum hy_tier t, uint32_t i, uint32_t len)
{
    int (*back)(enum hy_tier, void *, size_t) =
        hy_pages[t].tight ? hy_hg.host.release : hy_hg.host.purge;
    return back(t, granule_addr(i), (size_t)len << HEAP_GRANULE_SHIFT);
}

/* Give one dirty run back to the system. If that fails it stays dirty. */
static bool purge_run(enum hy_tier t, uint32_t i)
{
    struct pages *p = &hy_pages[t];
    uint32_t len = hy_hg.g[i].len, charged = len - hy_hg.g[i].holes;
    if (give_back(t, i, len) != 0)
        return false;
    leave(p, i);
    p->purged_granules += charged;
    free_add_clean(t, i, len);
    free_discharge(t, (uint64_t)charged << HEAP_GRANULE_SHIFT);
    return true;
}

/* Largest runs first: most memory for the fewest calls. */
void free_purge_down_to(enum hy_tier t, uint64_t granules)
{
    struct run_set *s = &hy_pages[t].dirty;
    for (unsigned b = RUN_BINS; b-- > 0 && s->granules > granules;)
        while (s->granules > granules && s->head[b] != NO_GRANULE)
            if (!purge_run(t, s->head[b]))
                return;
}

/* What of [i, i+run.len) does not lie on PM goes back and is no longer charged: holes from now on.
 * The run stays one, as whoever needs its addresses again finds them whole. */
static void sift(enum hy_tier t, uint32_t i, struct free_run *run)
{
    uint32_t at = 0, gone = 0;
    while (at < run->len) {
        size_t bytes = (size_t)(run->len - at) << HEAP_GRANULE_SHIFT;
        bool far = hy_hg.host.lies_far(granule_addr(i + at), &bytes);
        uint32_t n = (uint32_t)(bytes >> HEAP_GRANULE_SHIFT);
        if (!far && give_back(t, i + at, n) != 0)
            break;
        gone += far ? 0 : n;
        at += n;
    }
    /* Where its holes were is not known. They are among what has just gone, and not charged. */
    uint32_t more = gone - HY_MIN(gone, run->holes);
    run->holes += more;
    run->near = HY_MIN(run->near, run->len - at);
    hy_pages[t].purged_granules += more;
    free_discharge(t, (uint64_t)more << HEAP_GRANULE_SHIFT);
}

static void sift_all(enum hy_tier t)
{
    struct pages *p = &hy_pages[t];
    for (unsigned b = 0; b < RUN_BINS; b++)
        for (uint32_t i = p->dirty.head[b]; i != NO_GRANULE; i = hy_hg.g[i].next) {
            struct granule *g = &hy_hg.g[i];
            struct free_run run = {g->state, g->age, g->len, g->near, g->holes};
            if (g->near == 0)
                continue;
            p->near -= g->near;
            p->holes -= g->holes;
            sift(t, i, &run);
            g->near = run.near;
            g->holes = run.holes;
            p->near += g->near;
            p->holes += g->holes;
        }
}

/* DRAM is short, and pages of free runs may lie there, or on PM. What lies on PM is no loss to
 * anybody; DRAM comes to whoever touches memory next. */
static bool by_place(enum hy_tier t)
{
    return t == HY_DRAM && hy_hg.host.lies_far && !hy_pages[t].tight && heap_dram_is_short();
}

/* Pages that may lie on DRAM and be kept all the same. */
static uint64_t near_limit(const struct pages *p)
{
    return __atomic_load_n(&dram, __ATOMIC_RELAXED) == HEAP_DRAM_CHEAP
               ? keep_limit(&p->keep_near, live_pages(p), KEEP_FAR)
               : keep_limit(&p->keep, live_pages(p), KEEP_LITTLE);
}

static inline uint64_t dirty_limit(enum hy_tier t)
{
    const struct pages *p = &hy_pages[t];
    enum keep_mood mood = p->tight ? KEEP_TIGHT : KEEP_USUAL;
    if (HY_UNLIKELY(heap_dram_is_short()))
        mood = by_place(t) ? KEEP_FAR : KEEP_LITTLE;
    uint64_t limit = keep_limit(&p->keep, live_pages(p), mood);
    return limit - HY_MIN(limit, p->parked);
}

bool free_may_park(enum hy_tier t, uint32_t len)
{
    const struct pages *p = &hy_pages[t];
    return __atomic_load_n(&dram, __ATOMIC_RELAXED) == HEAP_DRAM_AMPLE &&
           p->parked + len <= keep_parked_limit(live_pages(p)) &&
           p->dirty.granules + len <= dirty_limit(t);
}

void free_add_renewed(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged)
{
    hy_pages[t].purged_granules += len;
    free_add_clean(t, i, len);
    free_discharge(t, charged);
}

bool free_add_purged(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged)
{
    if (give_back(t, i, len) != 0)
        return false;
    free_add_renewed(t, i, len, charged);
    return true;
}

void free_add(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged)
{
    struct pages *p = &hy_pages[t];
    struct free_run run = {.state = RUN_DIRTY, .len = len, .near = len};
    uint64_t full = (uint64_t)len << HEAP_GRANULE_SHIFT;
    if (full > charged && !hy_hg.host.charge(t, full - charged, false)) {
        /* No room even for the rounding: it cannot lie about. */
        if (free_add_purged(t, i, len, charged))
            return;
        (void)hy_hg.host.charge(t, full - charged, true);
    } else if (charged > full) {
        free_discharge(t, charged - full);
    }
    if (by_place(t) && len <= dirty_limit(t) && p->near + len > near_limit(p)) {
        sift(t, i, &run);
        keep_note_back(&p->keep_near, run.holes);
    }
    if (put(t, i, run) == i && hy_hg.g[i].len == len)
        hy_hg.g[i].beyond =
            (uint32_t)(HY_MIN(charged, full) / HY_PAGE) % (len * (HEAP_GRANULE / HY_PAGE));
    uint64_t limit = dirty_limit(t), before = p->purged_granules;
    if (p->dirty.granules > limit) {
        free_purge_down_to(t, limit - limit / 4);
        keep_note_back(&p->keep, p->purged_granules - before);
    }
}

static void decay_dirty(enum hy_tier t, uint64_t budget)
{
    struct pages *p = &hy_pages[t];
    for (unsigned b = RUN_BINS; b-- > 0 && budget;) {
        uint32_t i = p->dirty.head[b];
        while (i != NO_GRANULE && budget) {
            uint32_t next = hy_hg.g[i].next, len = hy_hg.g[i].len;
            if (hy_hg.g[i].age != p->tick) {
                if (!purge_run(t, i))
                    break;
                budget -= HY_MIN(budget, len);
            }
            i = next;
        }
    }
}

void pages_decay(enum hy_tier t, size_t max_bytes)
{
    struct pages *p = &hy_pages[t];
    hy_lock_take(&p->lock);
    parked_drain(t);
    decay_dirty(t, max_bytes >> HEAP_GRANULE_SHIFT);
    p->tick++;
    keep_tick(&p->keep);
    keep_tick(&p->keep_near);
    hy_lock_release(&p->lock);
}

/* Under the lock. */
static void give_back_as(enum hy_tier t, enum heap_dram before, enum heap_dram now)
{
    struct pages *p = &hy_pages[t];
    parked_drain(t);
    if (before < HEAP_DRAM_CHEAP && now >= HEAP_DRAM_CHEAP)
        free_purge_down_to(t, keep_limit(&p->keep, live_pages(p), KEEP_LITTLE));
    else if (now == HEAP_DRAM_SHORT && by_place(t))
        sift_all(t);
}

void heap_set_dram(enum heap_dram now, uint64_t left)
{
    enum heap_dram before = __atomic_exchange_n(&dram, now, __ATOMIC_RELAXED);
    if (now >= HEAP_DRAM_CHEAP)
        __atomic_store_n(&when_short, now, __ATOMIC_RELAXED);
    __atomic_store_n(&dram_left, left == UINT64_MAX ? INT64_MAX : (int64_t)(left / HY_PAGE),
                     __ATOMIC_RELAXED);
    for (int t = 0; now > before && t < HY_TIERS; t++) {
        hy_lock_take(&hy_pages[t].lock);
        give_back_as((enum hy_tier)t, before, now);
        hy_lock_release(&hy_pages[t].lock);
    }
}

void free_note_fresh(enum hy_tier t, uint32_t pages)
{
    if (t != HY_DRAM || pages == 0 || __atomic_load_n(&dram_left, __ATOMIC_RELAXED) == INT64_MAX)
        return;
    int64_t left = __atomic_sub_fetch(&dram_left, pages, __ATOMIC_RELAXED);
    enum heap_dram before = __atomic_load_n(&dram, __ATOMIC_RELAXED);
    if (left >= 0 || before >= HEAP_DRAM_CHEAP || when_short == HEAP_DRAM_CHEAP)
        return;
    __atomic_store_n(&dram, HEAP_DRAM_SHORT, __ATOMIC_RELAXED);
    give_back_as(t, before, HEAP_DRAM_SHORT);
}

void pages_purge_all(enum hy_tier t)
{
    hy_lock_take(&hy_pages[t].lock);
    parked_drain(t);
    free_purge_down_to(t, 0);
    hy_lock_release(&hy_pages[t].lock);
}
