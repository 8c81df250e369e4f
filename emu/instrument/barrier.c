/* SPDX-License-Identifier: BSD-2-Clause
 * Barriers. The last one to arrive knows when a phase ends: at the latest time of all who
 * came. It sets everybody's clock before the real barrier opens; a clock of the barrier
 * that each reads on waking would show the next phase to whoever the computer wakes late. */
#include <errno.h>
#include <pthread.h>

#include "core/core.h"
#include "instrument/real.h"
#include "instrument/sync.h"

#define BARRIERS 1024
#define PROBES   16

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static struct barrier {
    _Atomic uintptr_t address; /* 0: free */
    unsigned count;
    _Atomic unsigned arrived;
    _Atomic int64_t latest;
} barriers[BARRIERS];

/* The place that holds `address`, near its hash; NULL: none. */
static struct barrier *place_of(const pthread_barrier_t *b, uintptr_t address)
{
    uint64_t at = ((uintptr_t)b * 0x9E3779B97F4A7C15u) >> 32;

    for (unsigned i = 0; i < PROBES; i++) {
        struct barrier *k = &barriers[(at + i) % BARRIERS];
        if (atomic_load(&k->address) == address)
            return k;
    }
    return NULL;
}

static void forget(const pthread_barrier_t *b)
{
    struct barrier *k = place_of(b, (uintptr_t)b);
    if (k)
        atomic_store(&k->address, 0);
}

EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *a, unsigned n)
{
    REAL(int, pthread_barrier_init, pthread_barrier_t *, const pthread_barrierattr_t *, unsigned);
    int shared = PTHREAD_PROCESS_PRIVATE, r;
    uintptr_t none = 0;
    struct barrier *k;

    forget(b);
    r = f(b, a, n);
    if (a)
        (void)pthread_barrierattr_getpshared(a, &shared);
    /* Whom other processes send cannot be counted here. */
    if (r != 0 || shared != PTHREAD_PROCESS_PRIVATE)
        return r;
    do
        k = place_of(b, 0);
    while (k && !atomic_compare_exchange_weak(&k->address, &none, 1) && (none = 0) == 0);
    if (k) {
        k->count = n;
        atomic_store(&k->arrived, 0);
        atomic_store(&k->latest, 0);
        atomic_store(&k->address, (uintptr_t)b);
    }
    return r;
}

EXPORT int pthread_barrier_destroy(pthread_barrier_t *b)
{
    REAL(int, pthread_barrier_destroy, pthread_barrier_t *);
    forget(b);
    return f(b);
}

/* A barrier that we have not seen made: by its clock. */
static int wait_uncounted(pthread_barrier_t *b, int (*f)(pthread_barrier_t *))
{
    int r;

    emu_away((uintptr_t)b);
    emu_released(b);
    r = f(b);
    emu_back(emu_time_of(b));
    emu_release((uintptr_t)b, emu_now());
    return r;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
    REAL(int, pthread_barrier_wait, pthread_barrier_t *);
    struct barrier *k = place_of(b, (uintptr_t)b);
    int64_t now, old;
    int r;

    if (!k)
        return wait_uncounted(b, f);
    emu_away((uintptr_t)b);
    now = emu_now();
    old = atomic_load(&k->latest);
    while (old < now && !atomic_compare_exchange_weak(&k->latest, &old, now))
        ;
    if (atomic_fetch_add(&k->arrived, 1) + 1 == k->count) {
        /* Nobody can arrive again before f() lets the others go. */
        now = atomic_exchange(&k->latest, 0);
        atomic_store(&k->arrived, 0);
        emu_back(now);
        emu_release((uintptr_t)b, now);
        return f(b);
    }
    r = f(b);
    emu_back(now);
    return r;
}
