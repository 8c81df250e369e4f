/* SPDX-License-Identifier: BSD-2-Clause
 * Threads, locks, barriers and OpenMP teams. Each object has a clock: the highest time
 * of those who released it; whoever acquires it goes on not before that. A thread that
 * blocks is away meanwhile, so that others do not wait for it (clock.h).
 *
 * Clocks of objects lie in a table hashed by address; two objects that share an entry
 * make one thread a little late at worst, as threads are never far apart. Objects
 * shared between processes have a clock in each. */
#include "instrument/sync.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "core/core.h"

#define EXPORT __attribute__((visibility("default")))
#define CLOCKS 4096

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static _Atomic int64_t clocks[CLOCKS];
static pthread_key_t end_key;
static bool have_key;

static struct start {
    void *(*run)(void *);
    void *arg;
    int64_t now;
} starts[EMU_THREADS]; /* by clock slot, so no allocation */

static _Atomic int64_t *clock_of(const void *object)
{
    return &clocks[((uintptr_t)object * 0x9E3779B97F4A7C15u) >> 52];
}

static void released(const void *object)
{
    _Atomic int64_t *c = clock_of(object);
    int64_t now = emu_now(), old = atomic_load(c);
    while (old < now && !atomic_compare_exchange_weak(c, &old, now))
        ;
}

static int64_t time_of(const void *object)
{
    return atomic_load(clock_of(object));
}

/* glibc keeps old condition variables under the same name: ask for the new ones. */
static void *real(const char *name)
{
    void *f = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return f ? f : dlsym(RTLD_NEXT, name);
}

/* Looked up at the first call, which may be before our constructor. */
#define REAL(ret, name, ...)                                                                       \
    static ret (*f)(__VA_ARGS__);                                                                  \
    if (!f)                                                                                        \
    f = (ret(*)(__VA_ARGS__))real(#name)

/* --- threads -------------------------------------------------------------- */

static void thread_ends(void *unused)
{
    (void)unused;
    emu_settle();
    released((const void *)pthread_self()); /* NOLINT: an opaque number to hash */
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
    int slot = emu_thread_prepare(), r;

    if (slot < 0) /* not emulated: before the start, or too many threads */
        return f(t, a, run, arg);
    starts[slot] = (struct start){run, arg, emu_now()};
    r = f(t, a, run_thread, &starts[slot]);
    if (r != 0)
        emu_thread_abandon(slot);
    return r;
}

EXPORT int pthread_join(pthread_t t, void **ret)
{
    REAL(int, pthread_join, pthread_t, void **);
    int r;
    emu_away(0);
    r = f(t, ret);
    emu_back(r == 0 ? time_of((const void *)t) : emu_now()); /* NOLINT: as above */
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
            g = (int (*)(type *))real(#try);                                                       \
        emu_settle_debt();                                                                         \
        r = g(o);                                                                                  \
        if (r == EBUSY) {                                                                          \
            emu_away(0);                                                                           \
            r = f(o);                                                                              \
            emu_back(time_of(o));                                                                  \
        } else {                                                                                   \
            emu_catch_up(time_of(o));                                                              \
        }                                                                                          \
        return r;                                                                                  \
    }
#define UNLOCK(name, type)                                                                         \
    EXPORT int name(type *o)                                                                       \
    {                                                                                              \
        REAL(int, name, type *);                                                                   \
        if (emu_live()) {                                                                          \
            emu_settle_debt();                                                                     \
            released(o);                                                                           \
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
    emu_away(0);
    r = f(s);
    emu_back(time_of(s));
    return r;
}

EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    REAL(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *);
    int r;
    emu_away(0);
    released(m);
    r = f(c, m);
    emu_back(time_of(c));
    return r;
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
    REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int r;
    emu_away(0);
    released(m);
    r = f(c, m, t);
    emu_back(r == 0 ? time_of(c) : -1); /* a real-time delay has no virtual length */
    return r;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
    REAL(int, pthread_barrier_wait, pthread_barrier_t *);
    int r;
    emu_away((uintptr_t)b);
    released(b);
    r = f(b);
    emu_back(time_of(b));
    emu_release((uintptr_t)b, emu_now());
    return r;
}

/* --- OpenMP --------------------------------------------------------------- */

struct team {
    void (*run)(void *);
    void *arg;
    int64_t begin;
    _Atomic int64_t end;
};

static const char team_barrier; /* an address: the clock of all teams' barriers */

/* Every member of a team; pool threads are away between regions. */
static void run_member(void *p)
{
    struct team *t = p;
    int64_t now, old;

    emu_back(t->begin);
    t->run(t->arg);
    emu_settle();
    now = emu_now();
    old = atomic_load(&t->end);
    while (old < now && !atomic_compare_exchange_weak(&t->end, &old, now))
        ;
    emu_away(0);
}

static void team_done(const struct team *t)
{
    emu_back(atomic_load(&t->end));
}

EXPORT void GOMP_parallel(void (*run)(void *), void *arg, unsigned n, unsigned flags)
{
    REAL(void, GOMP_parallel, void (*)(void *), void *, unsigned, unsigned);
    struct team t = {.run = run, .arg = arg};
    emu_settle();
    t.begin = emu_now();
    f(run_member, &t, n, flags);
    team_done(&t);
}

#define PARALLEL_LOOP(kind)                                                                        \
    EXPORT void GOMP_parallel_loop_##kind(void (*run)(void *), void *arg, unsigned n, long from,   \
                                          long to, long step, long chunk, unsigned flags)          \
    {                                                                                              \
        REAL(void, GOMP_parallel_loop_##kind, void (*)(void *), void *, unsigned, long, long,      \
             long, long, unsigned);                                                                \
        struct team t = {.run = run, .arg = arg};                                                  \
        emu_settle();                                                                              \
        t.begin = emu_now();                                                                       \
        f(run_member, &t, n, from, to, step, chunk, flags);                                        \
        team_done(&t);                                                                             \
    }

PARALLEL_LOOP(static)
PARALLEL_LOOP(dynamic)
PARALLEL_LOOP(guided)
PARALLEL_LOOP(nonmonotonic_dynamic)
PARALLEL_LOOP(nonmonotonic_guided)

#define TEAM_BARRIER(name)                                                                         \
    EXPORT void name(void)                                                                         \
    {                                                                                              \
        REAL(void, name, void);                                                                    \
        emu_away((uintptr_t)&team_barrier);                                                        \
        released(&team_barrier);                                                                   \
        f();                                                                                       \
        emu_back(time_of(&team_barrier));                                                          \
        emu_release((uintptr_t)&team_barrier, emu_now());                                          \
    }

TEAM_BARRIER(GOMP_barrier)
TEAM_BARRIER(GOMP_loop_end)
