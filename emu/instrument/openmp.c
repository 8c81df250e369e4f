/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP teams: regions, barriers, locks, order, and who gets the next piece of a loop.
 * libgomp blocks by futexes that nobody sees, so all that can block is wrapped here.
 * Not wrapped: doacross loops, which are found by the clock as any unseen wait is. */
#include "instrument/openmp.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "instrument/real.h"
#include "instrument/sync.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static struct emu_team outermost; /* for threads that are in none */

static __thread struct {
    struct emu_team *team;
    bool waiting;
    uint64_t key;
} me __attribute__((tls_model("initial-exec")));

struct emu_team *emu_my_team(void)
{
    return me.team ? me.team : &outermost;
}

void emu_raise(_Atomic int64_t *clock)
{
    int64_t now = emu_now(), old = atomic_load(clock);
    while (old < now && !atomic_compare_exchange_weak(clock, &old, now))
        ;
}

void emu_wait_begins(uint64_t key)
{
    emu_away(key);
    me.waiting = true;
    me.key = key;
}

void emu_wait_ends(int64_t known)
{
    me.waiting = false;
    emu_back(known);
}

bool emu_task_begins(int64_t not_before)
{
    bool was = me.waiting;
    if (was)
        emu_wait_ends(not_before);
    return was;
}

void emu_task_ends(bool was_waiting)
{
    emu_settle();
    emu_raise(&emu_my_team()->tasks);
    if (was_waiting)
        emu_wait_begins(me.key);
}

/* --- regions ---------------------------------------------------------------- */

/* Every member of a team. Pool threads are away between regions; the team stays theirs,
 * as tasks that nobody waited for run while the members wait for each other at the end. */
static void run_member(void *p)
{
    struct emu_team *t = p;

    emu_wait_ends(t->begin);
    me.team = t;
    t->run(t->arg);
    emu_settle();
    emu_raise(&t->end);
    emu_wait_begins(t->dock);
}

/* The pool threads are at their places at once: while they wake up, the caller must not
 * run on as if it were alone. Threads of inner teams are always new ones. */
static void open_team(struct emu_team *t, unsigned n)
{
    static int (*most)(void);

    emu_settle();
    t->begin = emu_now();
    t->outer = me.team;
    t->dock = (uintptr_t)&me;
    if (t->outer || !emu_live())
        return;
    if (!most)
        most = (int (*)(void))emu_real("omp_get_max_threads");
    if (n == 0 && most)
        n = (unsigned)most();
    if (n > 1)
        emu_release_some(t->dock, t->begin, (int)n - 1);
}

static void close_team(const struct emu_team *t)
{
    int64_t end = atomic_load(&t->end), tasks = atomic_load(&t->tasks);
    me.team = t->outer;
    emu_wait_ends(end > tasks ? end : tasks);
}

#define REGION(name, types, args)                                                                  \
    EXPORT void name types                                                                         \
    {                                                                                              \
        REAL(void, name, LIST types);                                                              \
        struct emu_team t = {.run = run, .arg = arg};                                              \
        open_team(&t, n);                                                                          \
        f args;                                                                                    \
        close_team(&t);                                                                            \
    }
#define LIST(...) __VA_ARGS__

REGION(GOMP_parallel, (void (*run)(void *), void *arg, unsigned n, unsigned flags),
       (run_member, &t, n, flags))
REGION(GOMP_parallel_sections,
       (void (*run)(void *), void *arg, unsigned n, unsigned count, unsigned flags),
       (run_member, &t, n, count, flags))

#define REGION_LOOP(kind)                                                                          \
    REGION(GOMP_parallel_loop_##kind,                                                              \
           (void (*run)(void *), void *arg, unsigned n, long from, long to, long step, long chunk, \
            unsigned flags),                                                                       \
           (run_member, &t, n, from, to, step, chunk, flags))
#define REGION_LOOP_RUNTIME(kind)                                                                  \
    REGION(GOMP_parallel_loop_##kind,                                                              \
           (void (*run)(void *), void *arg, unsigned n, long from, long to, long step,             \
            unsigned flags),                                                                       \
           (run_member, &t, n, from, to, step, flags))

REGION_LOOP(static)
REGION_LOOP(dynamic)
REGION_LOOP(guided)
REGION_LOOP(nonmonotonic_dynamic)
REGION_LOOP(nonmonotonic_guided)
REGION_LOOP_RUNTIME(runtime)
REGION_LOOP_RUNTIME(nonmonotonic_runtime)
REGION_LOOP_RUNTIME(maybe_nonmonotonic_runtime)

EXPORT unsigned GOMP_parallel_reductions(void (*run)(void *), void *arg, unsigned n, unsigned flags)
{
    REAL(unsigned, GOMP_parallel_reductions, void (*)(void *), void *, unsigned, unsigned);
    struct emu_team t = {.reductions = *(void **)arg, .run = run, .arg = arg};
    unsigned r;
    open_team(&t, n);
    r = f(run_member, &t, n, flags);
    close_team(&t);
    return r;
}

/* --- barriers ---------------------------------------------------------------- */

static int64_t passed(struct emu_team *t)
{
    int64_t barrier = atomic_load(&t->barrier), tasks = atomic_load(&t->tasks);
    return barrier > tasks ? barrier : tasks;
}

#define ARRIVE                                                                                     \
    struct emu_team *t = emu_my_team();                                                            \
    emu_wait_begins((uintptr_t)t);                                                                 \
    emu_raise(&t->barrier)
#define PASS                                                                                       \
    emu_wait_ends(passed(t));                                                                      \
    emu_release((uintptr_t)t, emu_now())

#define BARRIER(name)                                                                              \
    EXPORT void name(void)                                                                         \
    {                                                                                              \
        REAL(void, name, void);                                                                    \
        ARRIVE;                                                                                    \
        f();                                                                                       \
        PASS;                                                                                      \
    }
#define BARRIER_CANCEL(name)                                                                       \
    EXPORT bool name(void)                                                                         \
    {                                                                                              \
        REAL(bool, name, void);                                                                    \
        bool r;                                                                                    \
        ARRIVE;                                                                                    \
        r = f();                                                                                   \
        PASS;                                                                                      \
        return r;                                                                                  \
    }

BARRIER(GOMP_barrier)
BARRIER(GOMP_loop_end)
BARRIER(GOMP_sections_end)
BARRIER_CANCEL(GOMP_barrier_cancel)
BARRIER_CANCEL(GOMP_loop_end_cancel)
BARRIER_CANCEL(GOMP_sections_end_cancel)

EXPORT void GOMP_workshare_task_reduction_unregister(bool cancelled)
{
    REAL(void, GOMP_workshare_task_reduction_unregister, bool);
    ARRIVE;
    f(cancelled);
    PASS;
}

/* One thread executes and hands a pointer to the others, which wait for it here. */
EXPORT void *GOMP_single_copy_start(void)
{
    REAL(void *, GOMP_single_copy_start, void);
    void *r;
    ARRIVE;
    r = f();
    emu_wait_ends(r ? passed(t) : emu_now());
    return r;
}

EXPORT void GOMP_single_copy_end(void *data)
{
    REAL(void, GOMP_single_copy_end, void *);
    ARRIVE;
    f(data);
    PASS;
}

/* --- locks: ours in the place of libgomp's ------------------------------------ */

static pthread_mutex_t unnamed = PTHREAD_MUTEX_INITIALIZER, atomics = PTHREAD_MUTEX_INITIALIZER;

EXPORT void GOMP_critical_start(void)
{
    (void)pthread_mutex_lock(&unnamed);
}

EXPORT void GOMP_critical_end(void)
{
    (void)pthread_mutex_unlock(&unnamed);
}

EXPORT void GOMP_atomic_start(void)
{
    (void)pthread_mutex_lock(&atomics);
}

EXPORT void GOMP_atomic_end(void)
{
    (void)pthread_mutex_unlock(&atomics);
}

/* A named section is known by a word of the program that is 0 at first: 1 taken, 2 and
 * somebody waits. The waits go through our syscall, which keeps the time. */
EXPORT void GOMP_critical_name_start(void **name)
{
    _Atomic uint32_t *w = (_Atomic uint32_t *)(void *)name;
    uint32_t free = 0;

    emu_settle_debt();
    if (!atomic_compare_exchange_strong(w, &free, 1))
        while (atomic_exchange(w, 2) != 0)
            syscall(SYS_futex, w, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    emu_catch_up(emu_time_of(name));
}

EXPORT void GOMP_critical_name_end(void **name)
{
    _Atomic uint32_t *w = (_Atomic uint32_t *)(void *)name;

    emu_settle_debt();
    emu_released(name);
    if (atomic_exchange(w, 0) == 2)
        syscall(SYS_futex, w, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

#define OMP_LOCK(name, test)                                                                       \
    EXPORT void name(void *o)                                                                      \
    {                                                                                              \
        REAL(void, name, void *);                                                                  \
        static int (*g)(void *);                                                                   \
        if (!g)                                                                                    \
            g = (int (*)(void *))emu_real(#test);                                                  \
        emu_settle_debt();                                                                         \
        if (g(o)) {                                                                                \
            emu_catch_up(emu_time_of(o));                                                          \
            return;                                                                                \
        }                                                                                          \
        emu_away(0);                                                                               \
        f(o);                                                                                      \
        emu_back(emu_time_of(o));                                                                  \
    }
#define OMP_UNLOCK(name)                                                                           \
    EXPORT void name(void *o)                                                                      \
    {                                                                                              \
        REAL(void, name, void *);                                                                  \
        emu_settle_debt();                                                                         \
        emu_released(o);                                                                           \
        f(o);                                                                                      \
    }

OMP_LOCK(omp_set_lock, omp_test_lock)
OMP_UNLOCK(omp_unset_lock)
OMP_LOCK(omp_set_nest_lock, omp_test_nest_lock)
OMP_UNLOCK(omp_unset_nest_lock)

/* --- order, and the next piece of a loop ---------------------------------------- */

EXPORT void GOMP_ordered_start(void)
{
    REAL(void, GOMP_ordered_start, void);
    emu_away(0);
    f();
    emu_back(atomic_load(&emu_my_team()->ordered));
}

EXPORT void GOMP_ordered_end(void)
{
    REAL(void, GOMP_ordered_end, void);
    emu_settle();
    emu_raise(&emu_my_team()->ordered);
    f();
}

#define NEXT(name, type)                                                                           \
    EXPORT bool name(type *from, type *to)                                                         \
    {                                                                                              \
        REAL(bool, name, type *, type *);                                                          \
        emu_settle_debt_ordered();                                                                 \
        return f(from, to);                                                                        \
    }
#define NEXT_OF(kind)                                                                              \
    NEXT(GOMP_loop_##kind##_next, long)                                                            \
    NEXT(GOMP_loop_ull_##kind##_next, unsigned long long)

NEXT_OF(dynamic)
NEXT_OF(guided)
NEXT_OF(runtime)
NEXT_OF(nonmonotonic_dynamic)
NEXT_OF(nonmonotonic_guided)
NEXT_OF(nonmonotonic_runtime)
NEXT_OF(maybe_nonmonotonic_runtime)

EXPORT unsigned GOMP_sections_next(void)
{
    REAL(unsigned, GOMP_sections_next, void);
    emu_settle_debt_ordered();
    return f();
}
