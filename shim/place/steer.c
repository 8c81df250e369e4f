/* SPDX-License-Identifier: BSD-2-Clause
 * The allocation functions while the heaps serve. The hot paths are the first
 * lines of steer_malloc and steer_free: a size class, the bin that is in favour
 * for it, a pop; an address range, a byte of the map, a push. */
#include <errno.h>
#include <string.h>

#include "base/guard.h"
#include "core/control.h"
#include "heap/heap.h"
#include "place/planned.h"
#include "place/sites.h"
#include "place/steer.h"
#include "settings/settings.h"
#include "sys/lock.h"

/* Requests of at least this are unwound; SIZE_MAX while sites are off. */
static size_t site_from = SIZE_MAX;

/* From foreign memory (made before the heaps, or by another allocator) a block
 * of this size comes over to the heaps when it is resized. */
#define ADOPT_FROM ((size_t)128 << 10)

/* Bin 0: a size without class; it is always empty. */
static inline size_t hot_offset(const struct thread_cache *tc, size_t n)
{
    if (HY_LIKELY(n <= SIZECLASS_SMALL))
        return __atomic_load_n(&tc->hot_step[sizeclass_step(n)], __ATOMIC_RELAXED);
    return n <= SIZECLASS_MAX ? __atomic_load_n(&tc->hot_bin[sizeclass_of(n)], __ATOMIC_RELAXED)
                              : heap_hot_offset(0);
}

/* May the heaps be asked? Not by what we call ourselves, nor by a handler that came while this
 * thread held a lock of ours: the next allocator, or later. */
static inline bool may_ask(void)
{
    return !hy_guarded() && !hy_locks_held();
}

static struct heap_want default_want(void)
{
    return (struct heap_want){.tier = heap_favour(), .weight = 1};
}

/* Ask the profile, count for the report. Not under the guard. */
static void look_up_site(size_t n, struct heap_want *w)
{
    bool large = w->weight == 1 && n >= site_from; /* those alone are numbered */
    site_id id = large ? sites_nth(sites_capture(), n) : sites_capture();
    w->site = id;
    sites_note_alloc(id, n, w->weight);
    w->part = planned_alloc(id, n, w->weight, &w->tier);
    w->level = w->part ? planned_levels(id) : NULL;
}

static void note_freed(site_id id, size_t n, uint32_t weight)
{
    sites_note_free(id, n, weight);
    planned_free(id);
}

static void *note_failed(void *p, const struct heap_want *w, size_t n)
{
    if (!p && w->site)
        note_freed(w->site, n, w->weight);
    return p;
}

enum request { PLAIN, ZEROED };

static void *from_heaps(size_t n, enum request how, const struct heap_want *w)
{
    void *p = how == ZEROED ? heap_alloc_zeroed(n, w) : heap_alloc(n, w);
    control_poke();
    return note_failed(p, w, n);
}

static uint32_t weight_of(int64_t interval, size_t n)
{
    return (uint32_t)HY_MIN((uint64_t)interval / HY_MAX(n, (size_t)1) + 1, UINT32_MAX);
}

/* The next sample is not always as far away: patterns must not hide from it. */
static int64_t next_sample(int64_t interval, uintptr_t seed)
{
    return interval / 2 +
           (int64_t)((seed >> 4) * 0x9E3779B97F4A7C15u >> 1) % (interval > 0 ? interval : 1);
}

/* As sampled(), of a block that has a run in any case. */
static void sample_run(size_t n, struct heap_want *w)
{
    int64_t interval = heap_sample_interval();
    if (hy_cache->state != CACHE_LIVE || interval == INT64_MAX ||
        (hy_cache->sample -= (int64_t)n) >= 0)
        return;
    hy_cache->sample = next_sample(interval, (uintptr_t)hy_cache->sample << 4);
    w->weight = weight_of(interval, n);
    look_up_site(n, w);
}

static HY_COLD void *slow(size_t n, enum request how)
{
    if (may_ask() && n <= PTRDIFF_MAX) {
        struct heap_want w = default_want();
        if (n >= site_from)
            look_up_site(n, &w);
        else if (n > SIZECLASS_MAX && site_from != SIZE_MAX)
            sample_run(n, &w);
        void *p = from_heaps(n, how, &w);
        if (p)
            return p;
    }
    return how == ZEROED ? hy_next.calloc(1, n) : hy_next.malloc(n);
}

/* One allocation in HYBRID_SITE_SAMPLE bytes gets a run of its own, which knows
 * its site; p was meant for it and goes back. */
static HY_COLD void *sampled(size_t n, void *p)
{
    int64_t interval = heap_sample_interval();
    if (interval == INT64_MAX) { /* no sites so far; placement may begin at any time */
        hy_cache->sample = HEAP_LOOK_AGAIN;
        return p;
    }
    hy_cache->sample = next_sample(interval, (uintptr_t)p);
    if (!may_ask() || site_from == SIZE_MAX)
        return p;
    struct heap_want w = default_want();
    w.own_run = true;
    w.weight = weight_of(interval, n);
    look_up_site(n, &w);
    void *q = note_failed(heap_alloc(n, &w), &w, n);
    if (!q)
        return p;
    heap_free(p);
    return q;
}

void *steer_malloc(size_t n)
{
    struct thread_cache *tc = hy_cache;
    size_t offset = hot_offset(tc, n);
    HEAP_HIDE_USES(offset);
    if (HY_UNLIKELY(heap_is_empty_at(tc, offset)))
        return slow(n, PLAIN);
    if (HY_UNLIKELY((tc->sample -= (int64_t)n) < 0))
        return sampled(n, heap_pop_at(tc, offset));
    return heap_pop_at(tc, offset);
}

static HY_COLD void free_slow(void *p)
{
    uint16_t site;
    uint32_t weight;
    size_t size;
    if (site_from != SIZE_MAX && may_ask() && heap_site_of(p, &site, &weight, &size) && site)
        note_freed(site, size, weight);
    heap_free_slow(p);
}

void steer_free(void *p)
{
    if (HY_UNLIKELY(!heap_owns(p))) {
        hy_next.free(p);
        return;
    }
    if (HY_UNLIKELY(!heap_push(hy_cache, p)))
        free_slow(p);
}

void *steer_calloc(size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    if (n > SIZECLASS_MAX)
        return slow(n, ZEROED);
    void *p = steer_malloc(n);
    return p ? memset(p, 0, n) : NULL;
}

/* The tier of a block that must move: its own, unless the plan is against it. */
static enum hy_tier tier_for_move(const void *p)
{
    enum hy_policy policy = hy_config.set.policy;
    if (policy == HY_POLICY_PM || policy == HY_POLICY_DRAM || heap_favour() == HY_PM)
        return heap_favour();
    return heap_tier_of(p);
}

static void *move_block(void *p, size_t old, size_t n)
{
    struct heap_want w = {.tier = tier_for_move(p), .weight = 1};
    void *q = NULL;
    if (n <= SIZECLASS_MAX)
        q = heap_pop(hy_cache, heap_own_bin(hy_cache, w.tier, sizeclass_of(n)));
    if (!q && may_ask() && n <= PTRDIFF_MAX) {
        if (n > old && n > SIZECLASS_MAX)
            w.spare = n / 4; /* a block that grows once grows again */
        if (n >= site_from)
            look_up_site(n, &w);
        q = from_heaps(n, PLAIN, &w);
    }
    if (!q)
        q = hy_next.malloc(n);
    if (!q)
        return NULL;
    memcpy(q, p, HY_MIN(old, n));
    steer_free(p);
    return q;
}

static void *resize_foreign(void *p, size_t n)
{
    size_t old = n >= ADOPT_FROM && may_ask() ? hy_next.usable_size(p) : 0;
    if (old == 0)
        return hy_next.realloc(p, n);
    void *q = steer_malloc(n);
    if (!q)
        return NULL;
    memcpy(q, p, HY_MIN(old, n));
    hy_next.free(p);
    return q;
}

static bool resize_in_place(void *p, size_t n)
{
    uint16_t site = 0;
    uint32_t weight;
    size_t old;
    bool tracked = site_from != SIZE_MAX && heap_site_of(p, &site, &weight, &old) && site;
    if (!heap_resize_in_place(p, n))
        return false;
    if (tracked) {
        sites_note_free(site, old, weight);
        sites_note_alloc(site, n, weight);
        planned_free(site);
    }
    return true;
}

void *steer_realloc(void *p, size_t n)
{
    if (!p)
        return steer_malloc(n);
    if (!heap_owns(p))
        return resize_foreign(p, n);
    if (n == 0) { /* as glibc: freed, and NULL is no failure */
        steer_free(p);
        return NULL;
    }
    if (resize_in_place(p, n))
        return p;
    return move_block(p, heap_usable_size(p), n);
}

void *steer_memalign(size_t align, size_t n)
{
    if (align <= 16)
        return steer_malloc(n);
    if (may_ask() && n <= PTRDIFF_MAX) {
        struct heap_want w = default_want();
        if (n >= site_from)
            look_up_site(n, &w);
        void *p = note_failed(heap_alloc_aligned(align, n, &w), &w, n);
        control_poke();
        if (p)
            return p;
    }
    return hy_next.memalign(align, n);
}

size_t steer_usable_size(void *p)
{
    return heap_owns(p) ? heap_usable_size(p) : hy_next.usable_size(p);
}

void steer_enable_sites(size_t unwind_from)
{
    site_from = unwind_from;
}

const struct alloc_ops steer_ops = {steer_malloc,  steer_free,     steer_calloc,
                                    steer_realloc, steer_memalign, steer_usable_size};

/* --- a profile names sites of small blocks ---------------------------------- */

/* The hooks end in a jump, so the return address here is the program's. */
static HY_COLD void *sited(size_t n)
{
    struct heap_want w = default_want();
    enum hy_tier t;
    if (!may_ask())
        return hy_next.malloc(n);
    if (sites_tier(sites_capture(), &t))
        w.tier = t;
    void *p = heap_alloc(n, &w);
    return p ? p : hy_next.malloc(n);
}

/* Too large for a span: a run of pages, which knows its site. */
static HY_COLD void *sited_run(size_t n, enum request how)
{
    if (may_ask()) {
        struct heap_want w = default_want();
        look_up_site(n, &w);
        void *p = from_heaps(n, how, &w);
        if (p)
            return p;
    }
    return how == ZEROED ? hy_next.calloc(1, n) : hy_next.malloc(n);
}

static void *site_malloc(size_t n)
{
    if (n < site_from && sites_may_steer(__builtin_return_address(0)))
        return n > SIZECLASS_MAX ? sited_run(n, PLAIN) : sited(n);
    return steer_malloc(n);
}

static void *site_calloc(size_t count, size_t size)
{
    size_t n;
    if (!__builtin_mul_overflow(count, size, &n) && n < site_from &&
        sites_may_steer(__builtin_return_address(0))) {
        if (n > SIZECLASS_MAX)
            return sited_run(n, ZEROED);
        void *p = sited(n);
        return p ? memset(p, 0, n) : NULL;
    }
    return steer_calloc(count, size);
}

const struct alloc_ops steer_site_ops = {site_malloc,   steer_free,     site_calloc,
                                         steer_realloc, steer_memalign, steer_usable_size};
