/* SPDX-License-Identifier: BSD-2-Clause
 * Per-thread caches: for every bin a stack of pointers to free blocks. The
 * stacks lie in DRAM metadata, so a free block of PM is not written to. Caches
 * come from a pool and go back to it when their thread ends. */
#include <string.h>

#include "base/guard.h"
#include "service/heap/internal.h"
#include "sys/os.h"

#define SLAB_BYTES ((size_t)1 << 20)

/* What every thread starts with, and what it ends with: all bins unusable. */
static struct thread_cache no_cache = {.state = CACHE_NONE, .sample = INT64_MAX};
static struct thread_cache dead_cache = {.state = CACHE_DEAD, .sample = INT64_MAX};

__thread struct thread_cache *hy_cache __attribute__((tls_model("initial-exec"))) = &no_cache;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread_cache *pool;
static char *slab, *slab_end;
static pthread_key_t exit_key;
static bool have_key;
static int64_t sample_interval = INT64_MAX;

static size_t cache_slots(void)
{
    size_t n = 0;
    for (unsigned c = 0; c < SIZECLASS_COUNT; c++)
        n += sizeclass_cache_blocks(c);
    return n * HY_TIERS;
}

static struct thread_cache *new_cache(void)
{
    size_t bytes = hy_align_up(sizeof(struct thread_cache) + cache_slots() * sizeof(void *), 64);
    struct thread_cache *tc = NULL;

    pthread_mutex_lock(&pool_lock);
    if (pool) {
        tc = pool;
        pool = tc->next_free;
        pthread_mutex_unlock(&pool_lock);
        return tc;
    }
    if ((size_t)(slab_end - slab) < bytes) {
        void *m;
        if (os_map_anon(SLAB_BYTES, &m) == 0) {
            slab = m;
            slab_end = slab + SLAB_BYTES;
        }
    }
    if ((size_t)(slab_end - slab) >= bytes) {
        tc = (struct thread_cache *)slab;
        slab += bytes;
    }
    pthread_mutex_unlock(&pool_lock);
    if (!tc)
        return NULL;

    void **slots = (void **)(tc + 1);
    for (unsigned t = 0; t < HY_TIERS; t++)
        for (unsigned c = 0; c < SIZECLASS_COUNT; c++) {
            struct cache_bin *b = &tc->bin[heap_bin((enum hy_tier)t, c)];
            b->slot = slots;
            b->cap = sizeclass_cache_blocks(c);
            slots += b->cap;
        }
    return tc;
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
    tc->state = CACHE_LIVE;
    tc->sample = __atomic_load_n(&sample_interval, __ATOMIC_RELAXED);
    hy_cache = tc;
    hy_guard_enter(); /* may allocate its second-level table */
    pthread_setspecific(exit_key, tc);
    hy_guard_leave();
    return tc;
}

static enum hy_tier bin_tier(unsigned bin)
{
    return bin > SIZECLASS_COUNT ? HY_PM : HY_DRAM;
}

static unsigned bin_class(unsigned bin)
{
    return (bin - 1) % SIZECLASS_COUNT;
}

void *cache_refill(enum hy_tier t, unsigned cls, bool force)
{
    struct thread_cache *tc = live_cache();
    if (!tc) {
        void *p;
        return central_take(t, cls, &p, 1, force) ? p : NULL;
    }
    struct cache_bin *b = &tc->bin[heap_bin(t, cls)];
    if (b->n == 0) {
        unsigned n = central_take(t, cls, b->slot, HY_MAX(b->cap / 2, 1u), force);
        /* Lowest address on top: memory is used from the start of a span. */
        for (unsigned i = 0, j = n; i + 1 < j; i++) {
            void *x = b->slot[i];
            b->slot[i] = b->slot[--j];
            b->slot[j] = x;
        }
        b->n = n;
    }
    return heap_pop(tc, heap_bin(t, cls));
}

void cache_overflow(unsigned bin, void *p)
{
    struct thread_cache *tc = live_cache();
    if (!tc) {
        central_give(bin_tier(bin), bin_class(bin), &p, 1);
        return;
    }
    struct cache_bin *b = &tc->bin[bin];
    if (b->n == b->cap) { /* the older half goes */
        unsigned n = b->cap / 2;
        central_give(bin_tier(bin), bin_class(bin), b->slot, n);
        memmove(b->slot, b->slot + n, (b->n - n) * sizeof(void *));
        b->n -= n;
    }
    b->slot[b->n++] = p;
}

static void flush(struct thread_cache *tc)
{
    for (unsigned bin = 1; bin <= HEAP_BINS; bin++) {
        struct cache_bin *b = &tc->bin[bin];
        unsigned n = b->n;
        b->n = 0;
        if (n)
            central_give(bin_tier(bin), bin_class(bin), b->slot, n);
    }
}

void cache_flush_thread(void)
{
    if (hy_cache->state == CACHE_LIVE)
        flush(hy_cache);
}

/* Destructors of other keys may still allocate after this: they find
 * dead_cache and work on the central lists. */
void heap_thread_exit(void *unused)
{
    struct thread_cache *tc = hy_cache;
    (void)unused;
    if (tc->state != CACHE_LIVE)
        return;
    hy_cache = &dead_cache;
    flush(tc);
    tc->state = CACHE_NONE;
    pthread_mutex_lock(&pool_lock);
    tc->next_free = pool;
    pool = tc;
    pthread_mutex_unlock(&pool_lock);
}

void heap_abandon(void)
{
    hy_cache = &dead_cache;
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
    have_key = pthread_key_create(&exit_key, heap_thread_exit) == 0;
}

void cache_prefork(void)
{
    pthread_mutex_lock(&pool_lock);
}

bool cache_try_prefork(void)
{
    return os_lock_within(&pool_lock, LOCK_PATIENCE_NS);
}

void cache_postfork(void)
{
    pthread_mutex_unlock(&pool_lock);
}
