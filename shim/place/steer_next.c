/* SPDX-License-Identifier: BSD-2-Clause
 * HYBRID_DRAM_ALLOCATOR=next: DRAM blocks come from the next allocator, whose
 * use of memory is measured (resident set less what lies on PM), since it does
 * not tell; PM blocks come from our heap. */
#include <string.h>

#include "base/guard.h"
#include "core/control.h"
#include "core/state.h"
#include "heap/heap.h"
#include "place/policy.h"
#include "place/steer.h"
#include "sys/lock.h"
#include "sys/os.h"

#define MEASURE_EVERY ((int64_t)1 << 20) /* bytes that a thread allocates in between */

static __thread int64_t left __attribute__((tls_model("initial-exec"))) = MEASURE_EVERY;
static bool dram_open = true;

void steer_next_measure(void)
{
    struct policy_view v;
    policy_get(&v);
    uint64_t rss = os_rss_bytes();
    uint64_t dram = rss > v.used[HY_PM] ? rss - v.used[HY_PM] : 0;
    bool open = policy_set_dram_used(dram) && v.favour == HY_DRAM;
    __atomic_store_n(&dram_open, open, __ATOMIC_RELAXED);
}

/* Where the control thread is, its tick measures as well. Before, bytes are counted. */
static HY_COLD bool measured(void)
{
    left = MEASURE_EVERY;
    if (runtime_state() == HY_SERVING)
        (void)policy_charge(HY_DRAM, MEASURE_EVERY, true);
    else if (runtime_state() == HY_STEERING && !hy_guarded() && !hy_locks_held())
        steer_next_measure();
    control_poke();
    return __atomic_load_n(&dram_open, __ATOMIC_RELAXED);
}

/* Sizes beyond INT64_MAX only bring the next look nearer, or later: harmless. */
static inline bool to_dram(size_t n)
{
    bool open = __atomic_load_n(&dram_open, __ATOMIC_RELAXED);
    if (HY_UNLIKELY((left -= (int64_t)n) < 0))
        open = measured();
    return HY_LIKELY(open) || hy_guarded() || hy_locks_held();
}

/* PM, or the next allocator when PM is full. */
static void *on_pm(size_t n, size_t align, bool zeroed)
{
    struct heap_want w = {.tier = HY_PM, .weight = 1};
    if (n > PTRDIFF_MAX)
        return NULL;
    if (align > 16)
        return heap_alloc_aligned(align, n, &w);
    return zeroed ? heap_alloc_zeroed(n, &w) : heap_alloc(n, &w);
}

static void *next_malloc(size_t n)
{
    if (HY_LIKELY(to_dram(n)))
        return hy_next.malloc(n);
    void *p = on_pm(n, 0, false);
    return p ? p : hy_next.malloc(n);
}

static void *next_calloc(size_t count, size_t size)
{
    size_t n;
    void *p = NULL;
    if (!__builtin_mul_overflow(count, size, &n) && !to_dram(n))
        p = on_pm(n, 0, true);
    return p ? p : hy_next.calloc(count, size);
}

static void *next_memalign(size_t align, size_t n)
{
    void *p = to_dram(n) ? NULL : on_pm(n, align, false);
    return p ? p : hy_next.memalign(align, n);
}

static void *move_to(void *p, size_t old, size_t n, void *q)
{
    if (!q)
        return NULL;
    memcpy(q, p, HY_MIN(old, n));
    steer_free(p);
    return q;
}

/* A block stays with its allocator, but for a large one that DRAM has no room for. */
static void *next_realloc(void *p, size_t n)
{
    if (!p)
        return next_malloc(n);
    if (!heap_owns(p)) {
        bool stay = n <= SIZECLASS_MAX || to_dram(n);
        size_t old = stay ? 0 : hy_next.usable_size(p);
        void *q = old ? on_pm(n, 0, false) : NULL;
        return q ? move_to(p, old, n, q) : hy_next.realloc(p, n);
    }
    if (n == 0) {
        steer_free(p);
        return NULL;
    }
    if (heap_resize_in_place(p, n))
        return p;
    void *q = hy_guarded() || hy_locks_held() ? NULL : on_pm(n, 0, false);
    return move_to(p, heap_usable_size(p), n, q ? q : hy_next.malloc(n));
}

const struct alloc_ops steer_next_ops = {next_malloc,  steer_free,    next_calloc,
                                         next_realloc, next_memalign, steer_usable_size};
