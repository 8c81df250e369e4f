/* SPDX-License-Identifier: BSD-2-Clause
 * Before the heaps: the next allocator serves, and a count of bytes tells when
 * a look at the resident set is due (files do not count: libraries are no data). A process that
 * never grows pays a subtraction for each allocation. */
#include "base/guard.h"
#include "runtime/internal.h"
#include "sys/os.h"

#define STEP ((int64_t)256 << 10) /* a thread reports after so many bytes */

static __thread int64_t left __attribute__((tls_model("initial-exec"))) = STEP;
static uint64_t counted, next_look;

/* The resident set cannot have passed the threshold before so many more bytes
 * were allocated: look again only then. */
static HY_COLD void look(uint64_t now)
{
    uint64_t anon = os_anon_bytes();
    if (anon >= hy_config.set.start)
        control_engage();
    else
        __atomic_store_n(&next_look, now + (hy_config.set.start - anon) / 2 + STEP,
                         __ATOMIC_RELAXED);
}

void watch_look(void)
{
    uint64_t now = __atomic_load_n(&counted, __ATOMIC_RELAXED);
    if (now >= __atomic_load_n(&next_look, __ATOMIC_RELAXED) && !hy_guarded() &&
        runtime_state() == HY_WATCH)
        look(now);
}

static HY_COLD void step(void)
{
    uint64_t bytes = (uint64_t)(STEP - left);
    left = STEP;
    __atomic_add_fetch(&counted, bytes, __ATOMIC_RELAXED);
    watch_look();
}

/* Call only where no lock of an allocator can be held: it may start a thread. */
static inline void note(size_t n)
{
    if (HY_UNLIKELY((left -= (int64_t)HY_MIN(n, (size_t)1 << 40)) < 0))
        step();
}

void watch_note(size_t bytes)
{
    if (runtime_state() == HY_WATCH)
        __atomic_add_fetch(&counted, HY_MIN(bytes, (size_t)1 << 40), __ATOMIC_RELAXED);
}

static void *watch_malloc(size_t n)
{
    note(n);
    return hy_next.malloc(n);
}

static void watch_free(void *p)
{
    hy_next.free(p);
}

static void *watch_calloc(size_t count, size_t size)
{
    note(count <= (size_t)1 << 32 && size <= (size_t)1 << 31 ? count * size : 0);
    return hy_next.calloc(count, size);
}

static void *watch_realloc(void *p, size_t n)
{
    note(n);
    return hy_next.realloc(p, n);
}

static void *watch_memalign(size_t align, size_t n)
{
    note(n);
    return hy_next.memalign(align, n);
}

static size_t watch_usable_size(void *p)
{
    return hy_next.usable_size(p);
}

const struct alloc_ops watch_ops = {watch_malloc,  watch_free,     watch_calloc,
                                    watch_realloc, watch_memalign, watch_usable_size};
