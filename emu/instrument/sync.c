/* SPDX-License-Identifier: BSD-2-Clause
 * Threads and locks. See sync.h. */
#include "instrument/sync.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "instrument/cpus.h"
#include "instrument/real.h"

#define CLOCKS 4096

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* Hashed by address. */
static _Atomic int64_t clocks[CLOCKS];
static pthread_key_t end_key;
static bool have_key;

static struct start {
    void *(*run)(void *);
    void *arg;
    int64_t now;
} starts[EMU_THREADS]; /* by clock slot, so no allocation */

static _Atomic int64_t *clock_of(const volatile void *object)
{
    return &clocks[((uintptr_t)object * 0x9E3779B97F4A7C15u) >> 52];
}

void emu_released(const volatile void *object)
{
    _Atomic int64_t *c = clock_of(object);
    int64_t now = emu_now(), old = atomic_load(c);
    while (old < now && !atomic_compare_exchange_weak(c, &old, now))
        ;
}

int64_t emu_time_of(const volatile void *object)
{
    return atomic_load(clock_of(object));
}

/* --- threads -------------------------------------------------------------- */

static void thread_ends(void *unused)
{
    (void)unused;
    emu_settle();
    emu_released((const void *)pthread_self()); /* NOLINT: an opaque number to hash */
    emu_thread_end();
}

void emu_sync_start(void)
{
    have_key = pthread_key_create(&end_key, thread_ends) == 0;
}

static void *run_thread(void *p)
{
    struct start s = *(struct start *)p;
    emu_thread_begin((int)((struct start *)p - starts), s.now);
    /* Also runs on pthread_exit and cancellation. */
    if (have_key)
        pthread_setspecific(end_key, starts);
    return s.run(s.arg);
}

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *arg)
{
    REAL(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct emu_cpuset cpus;
    pthread_attr_t plain;
    int on_cpus = emu_attr_split(a, &plain, &cpus), slot = -1, r;

    if (on_cpus < 0)
        return -on_cpus;
    slot = emu_thread_prepare();
    if (slot < 0) { /* not emulated: before the start, or too many threads */
        r = f(t, on_cpus ? &plain : a, run, arg);
    } else {
        if (on_cpus)
            (void)emu_affinity_prepared(slot, &cpus);
        starts[slot] = (struct start){run, arg, emu_now()};
        r = f(t, on_cpus ? &plain : a, run_thread, &starts[slot]);
        if (r != 0)
            emu_thread_abandon(slot);
    }
    if (on_cpus)
        pthread_attr_destroy(&plain);
    return r;
}

EXPORT int pthread_join(pthread_t t, void **ret)
{
    REAL(int, pthread_join, pthread_t, void **);
    int r;
    emu_away(0);
    r = f(t, ret);
    emu_back(r == 0 ? emu_time_of((const void *)t) : emu_now()); /* NOLINT: as above */
    return r;
}

/* --- locks: the free one is taken without being away ---------------------- */

#define LOCK(name, try, type)                                                                      \
    EXPORT int name(type *o)                                                                       \
    {                                                                                              \
        REAL(int, name, type *);                                                                   \
        static int (*g)(type *);                                                                   \
        int r;                                                                                     \
        if (!emu_live())                                                                           \
            return f(o);                                                                           \
        if (!g)                                                                                    \
            g = (int (*)(type *))emu_real(#try);                                                   \
        emu_settle_debt();                                                                         \
        r = g(o);                                                                                  \
        if (r == EBUSY) {                                                                          \
            emu_away(0);                                                                           \
            r = f(o);                                                                              \
            emu_back(emu_time_of(o));                                                              \
        } else {                                                                                   \
            emu_catch_up(emu_time_of(o));                                                          \
        }                                                                                          \
        return r;                                                                                  \
    }
#define UNLOCK(name, type)                                                                         \
    EXPORT int name(type *o)                                                                       \
    {                                                                                              \
        REAL(int, name, type *);                                                                   \
        if (emu_live()) {                                                                          \
            emu_settle_debt();                                                                     \
            emu_released(o);                                                                       \
        }                                                                                          \
        return f(o);                                                                               \
    }

LOCK(pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_t)
UNLOCK(pthread_mutex_unlock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t)
UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t)
UNLOCK(sem_post, sem_t)
UNLOCK(pthread_cond_signal, pthread_cond_t)
UNLOCK(pthread_cond_broadcast, pthread_cond_t)

EXPORT int sem_wait(sem_t *s)
{
    REAL(int, sem_wait, sem_t *);
    int r;
    if (!emu_live())
        return f(s);
    emu_settle_debt();
    if (sem_trywait(s) == 0) {
        emu_catch_up(emu_time_of(s));
        return 0;
    }
    emu_away(0);
    r = f(s);
    emu_back(emu_time_of(s));
    return r;
}

/* Each turn of the loop is work of this thread: it uses up its turn on the CPU. In order: who asks
 * again and again would else take the others, by the lock's time, as far ahead as it may be. */
EXPORT int pthread_spin_lock(pthread_spinlock_t *l)
{
    REAL(int, pthread_spin_lock, pthread_spinlock_t *);
    if (!emu_live())
        return f(l);
    emu_settle_debt_ordered();
    while (pthread_spin_trylock(l) == EBUSY) {
        emu_touch(l, 0);
        emu_compute();
        (void)syscall(SYS_sched_yield); /* for the real CPU only */
    }
    emu_catch_up(emu_time_of(l));
    return 0;
}

UNLOCK(pthread_spin_unlock, pthread_spinlock_t)

EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    REAL(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *);
    int r;
    emu_away(0);
    emu_released(m);
    r = f(c, m);
    emu_back(emu_time_of(c));
    return r;
}
