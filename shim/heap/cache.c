/* SPDX-License-Identifier: BSD-2-Clause
 * Per-thread caches: for every bin a stack of pointers to free blocks. The
 * stacks lie in DRAM metadata, so a free block of PM is not written to. Caches
 * come from a pool and go back to it when their thread ends.
 * A stack begins with no room at all and doubles as its thread comes here for more: a
 * thread that uses little keeps little from the others. */
#include <string.h>

#include "base/guard.h"
#include "heap/internal.h"
#include "sys/os.h"

#define SLAB_BYTES   ((size_t)32 << 10)
#define ROOM_AT_ONCE 2048 /* bytes of blocks that a new cache may keep */
#define ROOM_A_VISIT 128  /* and so many more, and 1/16 of a block, for each visit here */
#define SIZES        10   /* of stacks: 1, 2, 4 .. 512 */
/* Blocks that are asked for no more leave a cache in portions. */
#define LEAVE_AT_ONCE 64u
/* What the caches of all threads may hold, and one of very many. Nobody can take from the cache of
 * a thread that sleeps, so those of many threads never grow large. */
#define ALL_HOLD  (32 * HY_MIB)
#define EACH_HOLD (16 * HY_KIB)
/* Of DRAM: what lies in caches serves nobody, and there may be little. */
#define HOLD_PART 32u

/* What every thread starts with, and what it ends with: all bins unusable. */
static struct thread_cache no_cache = {.state = CACHE_NONE, .sample = INT64_MAX};
static struct thread_cache dead_cache = {.state = CACHE_DEAD, .sample = INT64_MAX};

__thread struct thread_cache *hy_cache __attribute__((tls_model("initial-exec"))) = &no_cache;

static struct hy_lock pool_lock;
static struct thread_cache *pool;
static void **stacks[SIZES]; /* that were outgrown, linked by their first word */
static char *slab, *slab_end;
static pthread_key_t exit_key;
static bool have_key;
static int64_t sample_interval = INT64_MAX;
static uint32_t live; /* caches in use */
static uint32_t live_of[HEAP_OWNERS];
static uint32_t made;

static void *from_slab(size_t bytes)
{
    void *m;
    bytes = hy_align_up(bytes, 16);
    if ((size_t)(slab_end - slab) < bytes) {
        if (heap_is_confined() || os_map_anon(SLAB_BYTES, &m))
            return NULL;
        slab = m;
        slab_end = slab + SLAB_BYTES;
    }
    m = slab;
    slab += bytes;
    return m;
}

/* Under the pool's lock. */
static void count_live(const struct thread_cache *tc, uint32_t more)
{
    uint32_t *of = &live_of[tc->number % HEAP_OWNERS];
    __atomic_store_n(&live, live + more, __ATOMIC_RELAXED);
    __atomic_store_n(of, *of + more, __ATOMIC_RELAXED);
}

unsigned cache_owners(void)
{
    return HY_MIN(__atomic_load_n(&made, __ATOMIC_RELAXED), HEAP_OWNERS);
}

bool cache_has_owner(unsigned owner)
{
    return __atomic_load_n(&live_of[owner], __ATOMIC_RELAXED) != 0;
}

static struct thread_cache *new_cache(void)
{
    hy_lock_take(&pool_lock);
    struct thread_cache *tc = pool;
    if (tc) {
        pool = tc->next_free;
    } else if ((tc = from_slab(sizeof(struct thread_cache))) != NULL) {
        tc->room = ROOM_AT_ONCE;
        tc->number = made;
        __atomic_store_n(&made, made + 1, __ATOMIC_RELAXED);
        favour_enter(tc);
    }
    if (tc)
        count_live(tc, 1);
    hy_lock_release(&pool_lock);
    return tc;
}

/* A stack of 1 << k; two words below its bottom can be read (heap_push looks at them). */
static void **new_stack(unsigned k)
{
    hy_lock_take(&pool_lock);
    void **s = stacks[k];
    if (s)
        stacks[k] = s[0];
    else if ((s = from_slab((HEAP_LOOKED_AT + ((size_t)1 << k)) * sizeof(void *))) != NULL)
        s += HEAP_LOOKED_AT;
    hy_lock_release(&pool_lock);
    return s;
}

static void give_stack(void **s, unsigned k)
{
    hy_lock_take(&pool_lock);
    s[0] = stacks[k];
    stacks[k] = s;
    hy_lock_release(&pool_lock);
}

static unsigned stack_size(uint32_t cap)
{
    return cap > 1 ? 32u - (unsigned)__builtin_clz(cap - 1) : 0;
}

static uint32_t blocks(const struct cache_bin *b)
{
    return (uint32_t)(b->top - b->bottom);
}

static uint32_t room(const struct cache_bin *b)
{
    return (uint32_t)(b->end - b->bottom);
}

static uint64_t all_hold; /* 0: nobody has told how much DRAM there is */

void heap_bound_caches(uint64_t dram)
{
    __atomic_store_n(&all_hold, HY_MAX(HY_MIN(dram / HOLD_PART, ALL_HOLD), 1u), __ATOMIC_RELAXED);
}

/* Its part of what all may hold. */
static bool may_hold(const struct thread_cache *tc, uint32_t more)
{
    uint64_t bound = __atomic_load_n(&all_hold, __ATOMIC_RELAXED);
    uint64_t each =
        (bound ? bound : ALL_HOLD) / HY_MAX(__atomic_load_n(&live, __ATOMIC_RELAXED), 1u);
    return tc->holds + more <= HY_MAX(each, (uint64_t)EACH_HOLD);
}

/* A cache that a thread of a time with fewer of them has left, empty: it begins anew. */
static void drop_size(struct thread_cache *tc)
{
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++) {
        struct cache_bin *b = &tc->bin[bin];
        if (b->bottom)
            give_stack(b->bottom, stack_size(room(b)));
        *b = (struct cache_bin){0};
    }
    tc->holds = 0;
    tc->room = ROOM_AT_ONCE;
}

/* The cache of this thread, made on first need; NULL for a thread that is past
 * its destructors or when there is no memory for one. */
static struct thread_cache *live_cache(void)
{
    struct thread_cache *tc = hy_cache;
    if (HY_LIKELY(tc->state == CACHE_LIVE))
        return tc;
    if (tc->state == CACHE_DEAD || !have_key)
        return NULL;
    tc = new_cache();
    if (!tc)
        return NULL;
    if (!may_hold(tc, 0))
        drop_size(tc);
    tc->state = CACHE_LIVE;
    tc->sample = HY_MIN(heap_sample_interval(), HEAP_LOOK_AGAIN);
    hy_cache = tc;
    hy_guard_enter(); /* may allocate its second-level table */
    pthread_setspecific(exit_key, tc);
    hy_guard_leave();
    return tc;
}

static uint32_t next_cap(unsigned cls, uint32_t cap)
{
    uint32_t first = sizeclass_bytes[cls] <= 256 ? 4 : sizeclass_bytes[cls] <= 2048 ? 2 : 1;
    return HY_MIN(cap ? cap * 2 : first, sizeclass_cache_blocks(cls));
}

/* Whoever comes here often may keep more. */
static void widen(struct thread_cache *tc, struct cache_bin *b, unsigned cls)
{
    uint32_t had = room(b), cap = next_cap(cls, had);
    int32_t price = (int32_t)((cap - had) * sizeclass_bytes[cls]);

    tc->room += ROOM_A_VISIT + sizeclass_bytes[cls] / 16;
    if (cap == had || tc->room < price || !may_hold(tc, (uint32_t)price))
        return;
    unsigned k = stack_size(cap), was = stack_size(had);
    if (!b->bottom || k != was) {
        void **s = new_stack(k), **old = b->bottom;
        uint32_t n = blocks(b);
        if (!s)
            return;
        if (old) {
            memcpy(s, old, n * sizeof(void *));
            give_stack(old, was);
        }
        b->bottom = s;
        b->top = s + n;
    }
    b->end = b->bottom + cap;
    tc->room -= price;
    tc->holds += (uint32_t)price;
}

/* Down to `cap`, or as far as one portion goes. */
static void narrow(struct thread_cache *tc, struct cache_bin *b, unsigned cls, uint32_t cap)
{
    void *out[LEAVE_AT_ONCE];
    uint32_t had = room(b), n = blocks(b);
    n = n > cap ? HY_MIN(n - cap, LEAVE_AT_ONCE) : 0;
    memcpy(out, b->top - n, n * sizeof(void *));
    b->top -= n; /* before they are free: a handler's malloc must not find them */
    b->end = b->bottom + HY_MAX(cap, blocks(b));
    tc->holds -= (had - room(b)) * sizeclass_bytes[cls];
    if (n)
        central_give(out, n);
}

/* A few blocks that nobody asks for any more keep a span each from other classes. So at each visit
 * one bin is looked at, in turn: what has as many blocks as the last time gives half of them back.
 * While the cache holds more than its part, as it is from a time when there was more, each bin
 * looked at becomes half as large. */
static void look_at_next(void)
{
    struct thread_cache *tc = hy_cache;
    if (tc->state != CACHE_LIVE)
        return;
    unsigned bin = tc->looked_at < HEAP_BINS ? tc->looked_at + 1u : 1;
    struct cache_bin *b = &tc->bin[bin];
    uint32_t n = blocks(b);
    if (room(b) && !may_hold(tc, 0)) {
        narrow(tc, b, heap_bin_class(bin), room(b) / 2);
    } else if (n && (uint8_t)n == tc->seen[bin]) {
        void *out[LEAVE_AT_ONCE];
        n = HY_MIN((n + 1) / 2, LEAVE_AT_ONCE);
        memcpy(out, b->top - n, n * sizeof(void *));
        b->top -= n; /* before they are free: a handler's malloc must not find them */
        central_give(out, n);
    }
    tc->seen[bin] = (uint8_t)blocks(b);
    tc->looked_at = (uint16_t)bin;
}

static void *refill(enum hy_tier t, unsigned cls, bool force)
{
    struct thread_cache *tc = live_cache();
    unsigned bin = heap_own_bin(tc ? tc : &dead_cache, t, cls);
    void *p;
    if (!tc)
        return central_take(bin, &p, 1, force) ? p : NULL;
    struct cache_bin *b = &tc->bin[bin];
    if (b->top == b->bottom) {
        if (room(b) < sizeclass_cache_blocks(cls))
            widen(tc, b, cls);
        if (room(b) == 0)
            return central_take(bin, &p, 1, force) ? p : NULL;
        unsigned n = central_take(bin, b->bottom, HY_MAX(room(b) / 2, 1u), force);
        b->top = b->bottom + n;
    }
    return heap_pop(tc, bin);
}

void *cache_refill(enum hy_tier t, unsigned cls, bool force)
{
    hy_cancel_enter();
    void *p = refill(t, cls, force);
    look_at_next();
    hy_cancel_leave();
    return p;
}

static void overflow(unsigned bin, void *p)
{
    struct thread_cache *tc = live_cache();
    unsigned cls = heap_bin_class(bin);
    if (!tc) {
        central_give(&p, 1);
        return;
    }
    struct cache_bin *b = &tc->bin[bin];
    if (b->top == b->end && room(b) < sizeclass_cache_blocks(cls))
        widen(tc, b, cls);
    if (b->top == b->end) { /* the older half goes */
        unsigned n = (room(b) + 1) / 2;
        if (n == 0) {
            central_give(&p, 1);
            return;
        }
        central_give(b->bottom, n);
        memmove(b->bottom, b->bottom + n, (blocks(b) - n) * sizeof(void *));
        b->top -= n;
    }
    *b->top++ = p;
}

void cache_overflow(unsigned bin, void *p)
{
    hy_cancel_enter();
    overflow(bin, p);
    look_at_next();
    hy_cancel_leave();
}

bool cache_holds(unsigned bin, const void *p)
{
    const struct cache_bin *b = &hy_cache->bin[bin];
    for (uint32_t i = 1; i <= HEAP_LOOKED_AT && i <= blocks(b); i++)
        if (b->top[-(ptrdiff_t)i] == p)
            return true;
    return false;
}

static void flush(struct thread_cache *tc)
{
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++) {
        struct cache_bin *b = &tc->bin[bin];
        unsigned n = blocks(b);
        b->top = b->bottom;
        if (n)
            central_give(b->bottom, n);
    }
}

void cache_flush_thread(void)
{
    if (hy_cache->state == CACHE_LIVE)
        flush(hy_cache);
}

/* Destructors of other keys may still allocate after this: they find
 * dead_cache and work on the central lists. */
static void thread_exit(void *unused)
{
    struct thread_cache *tc = hy_cache;
    (void)unused;
    if (tc->state != CACHE_LIVE)
        return;
    hy_cache = &dead_cache;
    flush(tc);
    tc->state = CACHE_NONE;
    hy_lock_take(&pool_lock);
    tc->next_free = pool;
    pool = tc;
    count_live(tc, (uint32_t)-1);
    hy_lock_release(&pool_lock);
}

void heap_set_sample_interval(int64_t bytes)
{
    __atomic_store_n(&sample_interval, bytes, __ATOMIC_RELAXED);
}

int64_t heap_sample_interval(void)
{
    return __atomic_load_n(&sample_interval, __ATOMIC_RELAXED);
}

void cache_init(void)
{
    have_key = pthread_key_create(&exit_key, thread_exit) == 0;
}

void cache_prefork(void)
{
    hy_lock_prefork(&pool_lock);
}

/* The child has neither the other threads nor their caches. */
void cache_postfork(bool child)
{
    if (child) {
        live = 0;
        memset(live_of, 0, sizeof(live_of));
        if (hy_cache->state == CACHE_LIVE)
            count_live(hy_cache, 1);
    }
    hy_lock_postfork(&pool_lock);
}
