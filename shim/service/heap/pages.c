/* SPDX-License-Identifier: BSD-2-Clause
 * Runs of granules. Free runs are either clean (no memory behind them, read as
 * zero) or dirty (still resident); the two are kept and joined apart, so that
 * what is known of a run stays true. What is charged to the tier: spans and
 * dirty runs in full, large blocks by their pages. */
#include <string.h>

#include "service/heap/internal.h"
#include "sys/os.h"

#define EXACT_BINS     64u
#define BINS           (EXACT_BINS + 26u)
#define LONG_SCAN      64  /* runs looked at in a bin of mixed lengths */
#define CHUNK_GRANULES 64u /* 4 MiB a time from the supplier */
/* How much may lie dirty: a base and a part of what is live; plus what turned
 * out to be given back too early, up to a bound, forgotten by and by. */
#define DIRTY_BASE   (1 * HY_MIB)
#define DIRTY_SHARE  32
#define REGRET_BASE  (64 * HY_MIB)
#define REGRET_SHARE 2

struct run_set {
    uint32_t head[BINS];
    uint64_t used[2]; /* bit per non-empty bin */
    uint64_t granules;
};

struct pages {
    pthread_mutex_t lock;
    struct run_set clean, dirty;
    uint64_t live_bytes, peak_bytes, taken_granules, spans, large, large_allocs, purged_granules;
    uint64_t early;     /* granules given back for the bound since the last tick */
    uint64_t regret;    /* granules the bound is raised by */
    uint32_t committed; /* tables are accessible below this granule */
    uint16_t tick;
} __attribute__((aligned(64)));

static struct pages pg[HY_TIERS];

static unsigned bin_of(uint32_t len)
{
    if (len < EXACT_BINS)
        return len;
    return EXACT_BINS + (31u - (unsigned)__builtin_clz(len / EXACT_BINS));
}

static struct run_set *set_of(struct pages *p, uint8_t state)
{
    return state == RUN_DIRTY ? &p->dirty : &p->clean;
}

static void set_insert(struct run_set *s, uint32_t i)
{
    struct granule *g = hy_hg.g;
    unsigned b = bin_of(g[i].len);
    g[i].prev = NO_GRANULE;
    g[i].next = s->head[b];
    if (s->head[b] != NO_GRANULE)
        g[s->head[b]].prev = i;
    s->head[b] = i;
    s->used[b / 64] |= 1ull << (b % 64);
    s->granules += g[i].len;
}

static void set_remove(struct run_set *s, uint32_t i)
{
    struct granule *g = hy_hg.g;
    unsigned b = bin_of(g[i].len);
    if (g[i].prev != NO_GRANULE)
        g[g[i].prev].next = g[i].next;
    else
        s->head[b] = g[i].next;
    if (g[i].next != NO_GRANULE)
        g[g[i].next].prev = g[i].prev;
    if (s->head[b] == NO_GRANULE)
        s->used[b / 64] &= ~(1ull << (b % 64));
    s->granules -= g[i].len;
}

static unsigned next_bin(const struct run_set *s, unsigned from)
{
    for (unsigned w = from / 64; w < 2; w++) {
        uint64_t bits = s->used[w];
        if (w == from / 64)
            bits &= ~0ull << (from % 64);
        if (bits)
            return w * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return BINS;
}

static uint32_t set_find(const struct run_set *s, uint32_t len)
{
    unsigned b = bin_of(len);
    if (len >= EXACT_BINS) {
        uint32_t i = s->head[b];
        for (int n = 0; i != NO_GRANULE && n < LONG_SCAN; n++, i = hy_hg.g[i].next)
            if (hy_hg.g[i].len >= len)
                return i;
        b++;
    }
    b = next_bin(s, b);
    return b < BINS ? s->head[b] : NO_GRANULE;
}

static void mark_run(uint32_t i, uint32_t len, enum run_state st)
{
    struct granule *g = hy_hg.g;
    g[i].state = g[i + len - 1].state = (uint8_t)st;
    g[i].len = g[i + len - 1].len = len;
}

/* Put [i, i+len) on a free set, joined with neighbours of the same kind. */
static void put_free(enum hy_tier t, uint32_t i, uint32_t len, enum run_state st)
{
    struct pages *p = &pg[t];
    struct run_set *s = set_of(p, (uint8_t)st);
    struct granule *g = hy_hg.g;
    uint32_t lo = hy_hg.first[t], hi = lo + hy_hg.count[t];

    if (i > lo && g[i - 1].state == st) {
        uint32_t n = g[i - 1].len;
        set_remove(s, i - n);
        i -= n;
        len += n;
    }
    if (i + len < hi && g[i + len].state == st) {
        uint32_t n = g[i + len].len;
        set_remove(s, i + len);
        len += n;
    }
    mark_run(i, len, st);
    g[i].age = p->tick;
    set_insert(s, i);
}

static void discharge(enum hy_tier t, uint64_t bytes)
{
    if (bytes)
        hy_hg.host.discharge(t, bytes);
}

/* Give one dirty run back to the system. If that fails it stays dirty. */
static bool purge_run(enum hy_tier t, uint32_t i)
{
    struct pages *p = &pg[t];
    uint32_t len = hy_hg.g[i].len;
    size_t bytes = (size_t)len << HEAP_GRANULE_SHIFT;
    if (hy_hg.host.purge(t, granule_addr(i), bytes) != 0)
        return false;
    set_remove(&p->dirty, i);
    p->purged_granules += len;
    put_free(t, i, len, RUN_CLEAN);
    discharge(t, bytes);
    return true;
}

/* Largest runs first: most memory for the fewest calls. */
static void purge_down_to(enum hy_tier t, uint64_t granules)
{
    struct run_set *s = &pg[t].dirty;
    for (unsigned b = BINS; b-- > 0 && s->granules > granules;)
        while (s->granules > granules && s->head[b] != NO_GRANULE)
            if (!purge_run(t, s->head[b]))
                return;
}

static uint64_t dirty_limit(const struct pages *p)
{
    return ((DIRTY_BASE + p->live_bytes / DIRTY_SHARE) >> HEAP_GRANULE_SHIFT) + p->regret;
}

/* Fresh memory is taken although as much was given back a moment ago: a program
 * that frees and allocates large blocks in turn pays for faults. Keep more. */
static void note_regret(struct pages *p, uint32_t len)
{
    uint64_t most = (REGRET_BASE + p->live_bytes / REGRET_SHARE) >> HEAP_GRANULE_SHIFT;
    if (p->early < len)
        return;
    p->early -= len;
    p->regret = HY_MIN(p->regret + 2 * len, most);
}

static void note_peak(struct pages *p)
{
    uint64_t now = p->live_bytes + (p->dirty.granules << HEAP_GRANULE_SHIFT);
    if (now > p->peak_bytes)
        p->peak_bytes = now;
}

/* Rows [from, to) of a table of `row` bytes each: whole pages, as steps are. */
static int commit_rows(void *table, uint32_t from, uint32_t to, size_t row)
{
    return os_commit((char *)table + from * row, (to - from) * row);
}

/* Tables are made accessible as the range fills, in steps; one granule beyond
 * a new run, as neighbours are looked at. */
static bool commit_tables(enum hy_tier t, uint32_t i, uint32_t len)
{
    struct pages *p = &pg[t];
    uint32_t lo = hy_hg.first[t], end = lo + hy_hg.count[t];
    uint32_t want = HY_MIN(i + len + 1, end);

    if (want <= p->committed)
        return true;
    want = (uint32_t)HY_MIN((uint64_t)hy_align_up(want, HEAP_STEP_GRANULES), (uint64_t)end);
    if (commit_rows(hy_hg.g, p->committed, want, sizeof(struct granule)) ||
        commit_rows(hy_hg.bits, p->committed, want, SPAN_MAX_BLOCKS / 8) ||
        commit_rows(hy_heap.map, p->committed, want, 1))
        return false;
    __atomic_store_n(&p->committed, want, __ATOMIC_RELEASE);
    return true;
}

static bool grow(enum hy_tier t, uint32_t len)
{
    struct pages *p = &pg[t];
    uint32_t n = HY_MAX(len, CHUNK_GRANULES);
    void *base = hy_hg.host.take(t, (size_t)n << HEAP_GRANULE_SHIFT);
    if (!base && n > len)
        base = hy_hg.host.take(t, (size_t)(n = len) << HEAP_GRANULE_SHIFT);
    if (!base || !commit_tables(t, granule_of(base), n))
        return false;
    p->taken_granules += n;
    put_free(t, granule_of(base), n, RUN_CLEAN);
    return true;
}

/* Find a run of at least `len`; ret_kind is the set it was taken from. Charges
 * `bytes` for memory that was not charged yet. */
static uint32_t find_run(enum hy_tier t, uint32_t len, uint64_t bytes, bool force,
                         enum run_state *ret_kind)
{
    struct pages *p = &pg[t];
    uint32_t i = set_find(&p->dirty, len);
    if (i != NO_GRANULE) {
        *ret_kind = RUN_DIRTY;
        return i;
    }
    if (!hy_hg.host.charge(t, bytes, false)) {
        purge_down_to(t, 0); /* what lies free here is charged as well */
        if (!hy_hg.host.charge(t, bytes, force))
            return NO_GRANULE;
    }
    *ret_kind = RUN_CLEAN;
    note_regret(p, len);
    i = set_find(&p->clean, len);
    if (i == NO_GRANULE && grow(t, len))
        i = set_find(&p->clean, len);
    if (i == NO_GRANULE) { /* range used up: join what is dirty with what is clean */
        purge_down_to(t, 0);
        i = set_find(&p->clean, len);
    }
    if (i == NO_GRANULE)
        discharge(t, bytes);
    return i;
}

/* Clean memory is about to be used. */
static bool restore(enum hy_tier t, uint32_t i, uint32_t len)
{
    return !hy_hg.host.restore ||
           hy_hg.host.restore(t, granule_addr(i), (size_t)len << HEAP_GRANULE_SHIFT);
}

uint32_t pages_alloc(enum hy_tier t, uint32_t len, uint32_t align, uint64_t size, bool force,
                     bool *ret_zeroed)
{
    struct pages *p = &pg[t];
    struct granule *g = hy_hg.g;
    enum run_state kind, as = size ? RUN_LARGE : RUN_SPAN;
    uint64_t full = (uint64_t)len << HEAP_GRANULE_SHIFT, bytes = size ? size : full;

    pthread_mutex_lock(&p->lock);
    uint32_t i = find_run(t, len + align - 1, bytes, force, &kind), skip = 0;
    if (i != NO_GRANULE) {
        skip = (uint32_t)(-((hy_heap.base >> HEAP_GRANULE_SHIFT) + i) & (align - 1));
        if (kind == RUN_CLEAN && !restore(t, i + skip, len)) {
            discharge(t, bytes);
            i = NO_GRANULE;
        }
    }
    if (i != NO_GRANULE) {
        uint32_t total = g[i].len;
        set_remove(set_of(p, (uint8_t)kind), i);
        /* Taken first, so that the pieces beside it do not join over it. */
        mark_run(i + skip, len, as);
        if (skip)
            put_free(t, i, skip, kind);
        if (total - skip - len)
            put_free(t, i + skip + len, total - skip - len, kind);
        if (kind == RUN_DIRTY) /* was charged in full */
            discharge(t, full - bytes);
        i += skip;
        g[i].size = bytes;
        g[i].site = 0;
        g[i].weight = 1;
        p->live_bytes += bytes;
        p->spans += !size;
        p->large += size != 0;
        p->large_allocs += size != 0;
        note_peak(p);
        *ret_zeroed = kind == RUN_CLEAN;
    }
    pthread_mutex_unlock(&p->lock);
    return i;
}

/* What a live run is charged: spans in full, large blocks by their pages. */
static uint64_t run_bytes(const struct granule *g)
{
    return g->state == RUN_LARGE ? g->size : (uint64_t)g->len << HEAP_GRANULE_SHIFT;
}

void pages_set_size(uint32_t head, uint64_t size)
{
    enum hy_tier t = granule_tier(head);
    struct granule *g = &hy_hg.g[head];
    pthread_mutex_lock(&pg[t].lock);
    uint64_t before = run_bytes(g);
    g->size = size;
    pg[t].live_bytes += size - before;
    if (size < before)
        discharge(t, before - size);
    else if (size > before)
        (void)hy_hg.host.charge(t, size - before, true);
    pthread_mutex_unlock(&pg[t].lock);
}

static void to_dirty(enum hy_tier t, uint32_t i, uint32_t len, uint64_t charged)
{
    struct pages *p = &pg[t];
    uint64_t full = (uint64_t)len << HEAP_GRANULE_SHIFT;
    if (full > charged && !hy_hg.host.charge(t, full - charged, false)) {
        /* No room even for the rounding: it cannot lie about. */
        if (hy_hg.host.purge(t, granule_addr(i), full) == 0) {
            p->purged_granules += len;
            put_free(t, i, len, RUN_CLEAN);
            discharge(t, charged);
            return;
        }
        (void)hy_hg.host.charge(t, full - charged, true);
    } else if (charged > full) {
        discharge(t, charged - full);
    }
    put_free(t, i, len, RUN_DIRTY);
    uint64_t limit = dirty_limit(p), before = p->purged_granules;
    if (p->dirty.granules > limit) {
        purge_down_to(t, limit - limit / 4);
        p->early += p->purged_granules - before;
    }
}

void pages_free(uint32_t head)
{
    enum hy_tier t = granule_tier(head);
    struct pages *p = &pg[t];
    struct granule *g = &hy_hg.g[head];

    pthread_mutex_lock(&p->lock);
    uint64_t bytes = run_bytes(g);
    if (g->state == RUN_LARGE)
        p->large--;
    else
        p->spans--;
    p->live_bytes -= bytes;
    to_dirty(t, head, g->len, bytes);
    pthread_mutex_unlock(&p->lock);
}

void pages_shrink(uint32_t head, uint32_t len)
{
    enum hy_tier t = granule_tier(head);
    struct granule *g = &hy_hg.g[head];

    pthread_mutex_lock(&pg[t].lock);
    if (len < g->len) {
        uint32_t rest = g->len - len;
        mark_run(head, len, RUN_LARGE);
        /* Charged with the block so far as its size said; the caller sets the
         * new size next, so the rest comes in as not charged. */
        to_dirty(t, head + len, rest, 0);
    }
    pthread_mutex_unlock(&pg[t].lock);
}

bool pages_grow(uint32_t head, uint32_t len)
{
    enum hy_tier t = granule_tier(head);
    struct pages *p = &pg[t];
    struct granule *g = hy_hg.g;
    bool ok = false;

    pthread_mutex_lock(&p->lock);
    uint32_t have = g[head].len, need = len - have, next = head + have;
    if (next < hy_hg.first[t] + hy_hg.count[t] &&
        (g[next].state == RUN_CLEAN || g[next].state == RUN_DIRTY) && g[next].len >= need &&
        (g[next].state == RUN_DIRTY || restore(t, next, need))) {
        enum run_state kind = (enum run_state)g[next].state;
        uint32_t free_len = g[next].len;
        uint64_t bytes = (uint64_t)need << HEAP_GRANULE_SHIFT;
        /* The caller charges by size (pages_set_size); here only ask. */
        if (hy_hg.host.charge(t, bytes, false)) {
            discharge(t, bytes);
            set_remove(set_of(p, (uint8_t)kind), next);
            if (kind == RUN_DIRTY)
                discharge(t, bytes);
            mark_run(head, len, RUN_LARGE);
            if (free_len > need)
                put_free(t, next + need, free_len - need, kind);
            ok = true;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return ok;
}

void pages_decay(enum hy_tier t, size_t max_bytes)
{
    struct pages *p = &pg[t];
    uint64_t budget = max_bytes >> HEAP_GRANULE_SHIFT;

    pthread_mutex_lock(&p->lock);
    for (unsigned b = BINS; b-- > 0 && budget;) {
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
    p->tick++;
    p->early = 0;
    p->regret -= (p->regret + 7) / 8;
    pthread_mutex_unlock(&p->lock);
}

void pages_purge_all(enum hy_tier t)
{
    pthread_mutex_lock(&pg[t].lock);
    purge_down_to(t, 0);
    pthread_mutex_unlock(&pg[t].lock);
}

void pages_stats(enum hy_tier t, struct heap_stats *ret)
{
    struct pages *p = &pg[t];
    pthread_mutex_lock(&p->lock);
    ret->live_bytes = p->live_bytes;
    ret->dirty_bytes = p->dirty.granules << HEAP_GRANULE_SHIFT;
    ret->peak_bytes = p->peak_bytes;
    ret->taken_bytes = p->taken_granules << HEAP_GRANULE_SHIFT;
    ret->spans = p->spans;
    ret->large_blocks = p->large;
    ret->large_allocs = p->large_allocs;
    ret->purged_bytes = p->purged_granules << HEAP_GRANULE_SHIFT;
    pthread_mutex_unlock(&p->lock);
}

uint32_t pages_committed(enum hy_tier t)
{
    return __atomic_load_n(&pg[t].committed, __ATOMIC_ACQUIRE);
}

void pages_init(void)
{
    for (int t = 0; t < HY_TIERS; t++) {
        pthread_mutex_init(&pg[t].lock, NULL);
        pg[t].committed = hy_hg.first[t];
        memset(pg[t].clean.head, 0xff, sizeof(pg[t].clean.head));
        memset(pg[t].dirty.head, 0xff, sizeof(pg[t].dirty.head));
    }
}

void pages_prefork(void)
{
    for (int t = 0; t < HY_TIERS; t++)
        pthread_mutex_lock(&pg[t].lock);
}

bool pages_try_prefork(void)
{
    if (!os_lock_within(&pg[HY_DRAM].lock, LOCK_PATIENCE_NS))
        return false;
    if (os_lock_within(&pg[HY_PM].lock, LOCK_PATIENCE_NS))
        return true;
    pthread_mutex_unlock(&pg[HY_DRAM].lock);
    return false;
}

void pages_postfork(void)
{
    for (int t = HY_TIERS; t-- > 0;)
        pthread_mutex_unlock(&pg[t].lock);
}

static bool set_is_valid(const struct run_set *s, enum run_state st)
{
    uint64_t sum = 0;
    for (unsigned b = 0; b < BINS; b++)
        for (uint32_t i = s->head[b]; i != NO_GRANULE; i = hy_hg.g[i].next) {
            const struct granule *g = &hy_hg.g[i];
            if (g->state != st || g[g->len - 1].state != st || g[g->len - 1].len != g->len ||
                bin_of(g->len) != b)
                return false;
            sum += g->len;
        }
    return sum == s->granules;
}

bool pages_is_valid(enum hy_tier t)
{
    pthread_mutex_lock(&pg[t].lock);
    bool ok = set_is_valid(&pg[t].clean, RUN_CLEAN) && set_is_valid(&pg[t].dirty, RUN_DIRTY);
    pthread_mutex_unlock(&pg[t].lock);
    return ok;
}
