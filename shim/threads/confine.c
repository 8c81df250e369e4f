/* SPDX-License-Identifier: BSD-2-Clause
 * Confinement to fewer CPUs, and what programs are told. See threadcap.h. */
#include "threads/confine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/pause.h"
#include "core/state.h"
#include "sys/cpu.h"
#include "sys/log.h"
#include "sys/os.h"
#include "threads/cpu_facts.h"
#include "threads/rules/cpus.h"

#define OWN_MAX 1024 /* threads with an affinity of their own; beyond: found by their mask */
/* Threads made while the others are confined inherit either mask: list them again. */
#define ROUNDS 3
/* States kept: to copy without a lock, and to know a mask again that was told before. */
#define STATES 32u

uint32_t hy_thread_active;
uint64_t hy_threads_created;

/* What the process had at first; what questions are answered; what is in force: a program
 * with no more threads than its cap need not be kept to it, and one that tries a count out is
 * kept to it but not told. */
struct masks {
    struct hy_cpus base, answered, now;
    unsigned cap; /* of `told`; 0: it is `base` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* changes of what follows, but `own` */
/* The current state is never written again before STATES - 1 others were. */
static struct masks states[STATES];
static uint32_t current;
static bool have_base;
static struct cpu_facts facts[HY_CPUS];
static unsigned n_facts;
static unsigned changes;
static int32_t own[OWN_MAX]; /* tids, 0: free */
static bool have_own;        /* there was one: else a child leaves its page alone */

static const struct masks *masks(void)
{
    return &states[__atomic_load_n(&current, __ATOMIC_ACQUIRE) % STATES];
}

static void publish(const struct masks *m)
{
    states[(current + 1) % STATES] = *m;
    __atomic_store_n(&current, current + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&hy_thread_active,
                     !cpus_equal(&m->answered, &m->base) || !cpus_equal(&m->now, &m->base),
                     __ATOMIC_RELEASE);
}

/* --- threads with an affinity of their own --------------------------------------- */

static bool is_own(int32_t tid)
{
    for (unsigned i = 0; i < OWN_MAX; i++)
        if (__atomic_load_n(&own[i], __ATOMIC_RELAXED) == tid)
            return true;
    return false;
}

static void change_own(int32_t from, int32_t to)
{
    for (unsigned i = 0; i < OWN_MAX; i++) {
        int32_t has = from;
        if (__atomic_compare_exchange_n(&own[i], &has, to, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return;
    }
}

static void note_own(int32_t tid)
{
    __atomic_store_n(&have_own, true, __ATOMIC_RELAXED);
    if (!is_own(tid))
        change_own(0, tid);
}

/* Numbers come again: forget threads that are gone. */
static void forget_dead(void)
{
    struct hy_cpus unused;
    for (unsigned i = 0; i < OWN_MAX; i++) {
        int32_t tid = __atomic_load_n(&own[i], __ATOMIC_RELAXED);
        if (tid && cpu_get(tid, &unused) < 0)
            __atomic_store_n(&own[i], 0, __ATOMIC_RELAXED);
    }
}

/* Is the calling thread's affinity this one? */
static bool has_mask(const struct hy_cpus *mask)
{
    struct hy_cpus has;
    return cpu_get(0, &has) == 0 && cpus_equal(&has, mask);
}

/* Programs may ask about, and set, threads of other processes: those are none of ours. */
static bool is_ours(pid_t tid)
{
    char path[48];
    if (tid == 0)
        return true;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d", (int)tid);
    return os_file_exists(path);
}

/* --- all threads of the process ---------------------------------------------------- */

struct round {
    const struct hy_cpus *from, *to;
    unsigned moved;
};

/* Only what still has the mask that we know of is ours to change. */
static void confine_one(void *ctx, const char *name)
{
    struct round *r = ctx;
    struct hy_cpus has;
    int tid = atoi(name);
    if (tid <= 0 || is_own(tid) || cpu_get(tid, &has) < 0 || !cpus_equal(&has, r->from))
        return;
    /* By 0 the emulated machine knows the calling thread before it has begun. */
    if (cpu_set(tid == os_gettid() ? 0 : tid, r->to) == 0)
        r->moved++;
}

static void confine_all(const struct hy_cpus *from, const struct hy_cpus *to)
{
    struct round r = {.from = from, .to = to};
    for (int i = 0; i < ROUNDS; i++) {
        r.moved = 0;
        if (os_list_dir("/proc/self/task", confine_one, &r) < 0) {
            if (has_mask(from)) /* no /proc: this thread at least */
                (void)cpu_set(0, to);
        }
        if (r.moved == 0)
            break;
    }
}

/* Again once it is known which nodes are PM. */
static void learn_cpus(void)
{
    static uint64_t seen_from;
    if (n_facts && seen_from == hy_machine.pm_mask)
        return;
    seen_from = hy_machine.pm_mask;
    n_facts = cpu_facts_read("/sys", seen_from, facts);
}

static bool learn_base(void)
{
    struct masks m = {.cap = 0};
    if (have_base)
        return true;
    /* The main thread's: the calling one may have been made with an affinity. */
    if (cpu_get(os_pid(), &m.base) < 0 && cpu_get(0, &m.base) < 0)
        return false; /* refused (seccomp): nothing is capped */
    m.now = m.answered = m.base;
    publish(&m);
    have_base = true;
    return true;
}

bool threadcap_base(struct hy_cpus *ret)
{
    bool ok;
    pthread_mutex_lock(&lock);
    ok = learn_base();
    if (ok)
        *ret = masks()->base;
    pthread_mutex_unlock(&lock);
    return ok;
}

static struct hy_cpus choose(const struct hy_cpus *base, const struct hy_cpus *taken,
                             unsigned count)
{
    if (count == 0 || count >= cpus_count(base))
        return *base;
    learn_cpus();
    return cpus_choose(base, taken, facts, n_facts, cpus_turn(base, (uint32_t)os_pid(), count),
                       count);
}

void threadcap_confine(unsigned answered, unsigned held, const struct hy_cpus *taken,
                       const char *why)
{
    struct masks m, was;

    pthread_mutex_lock(&lock);
    if (!learn_base()) {
        pthread_mutex_unlock(&lock);
        return;
    }
    m = was = *masks();
    m.answered = choose(&m.base, taken, answered);
    m.now = held == answered ? m.answered : choose(&m.base, taken, held);
    m.cap = cpus_equal(&m.answered, &m.base) ? 0 : cpus_count(&m.answered);
    if (m.cap == was.cap)
        why = NULL; /* other CPUs, as many; or a count that is only tried */
    if (!cpus_equal(&m.now, &was.now)) {
        forget_dead();
        publish(&m); /* first, so that what a thread asks meanwhile is right */
        confine_all(&was.now, &m.now);
        changes++;
    } else if (!cpus_equal(&m.answered, &was.answered)) {
        publish(&m);
    }
    pthread_mutex_unlock(&lock);
    if (why && m.cap)
        log_info("threads: at most %u at a time, %s", m.cap, why);
    else if (why)
        log_info("threads: %s", why);
}

void threadcap_answered(struct hy_cpus *ret)
{
    const struct masks *m = masks();
    *ret = m->cap ? m->answered : (struct hy_cpus){{0}};
}

void confine_forget_created(void)
{
    hy_threads_created = 0;
}

void confine_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh; /* may have been held in the parent */
    if (have_own)
        memset(own, 0, sizeof(own));
    have_own = false;
    if (!threadcap_active())
        return;
    struct masks m = *masks();
    if (has_mask(&m.now))
        (void)cpu_set(0, &m.base);
    m.now = m.answered = m.base;
    m.cap = 0;
    publish(&m);
}

void threadcap_count(struct threadcap_view *ret)
{
    const struct masks *m = masks();
    ret->cap = m->cap;
    ret->base = have_base ? cpus_count(&m->base) : 0;
    ret->held = have_base && !cpus_equal(&m->now, &m->base) ? cpus_count(&m->now) : 0;
    ret->times = changes;
    ret->created = __atomic_load_n(&hy_threads_created, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < OWN_MAX; i++)
        ret->left_alone += __atomic_load_n(&own[i], __ATOMIC_RELAXED) != 0;
}

/* --- for the hooks ---------------------------------------------------------------------- */

long threadcap_online(long real)
{
    long cap;
    if (HY_LIKELY(!threadcap_active()))
        return real;
    cap = (long)masks()->cap;
    if (cap == 0 || real <= cap || is_own(os_gettid()))
        return real;
    return cap;
}

void threadcap_answer(pid_t tid, void *mask, size_t bytes)
{
    const struct masks *m = masks();
    struct hy_cpus has = {{0}};

    if (HY_LIKELY(!threadcap_active()) || is_own(tid ? tid : os_gettid()) || !is_ours(tid))
        return;
    memcpy(&has, mask, HY_MIN(bytes, sizeof(has)));
    /* One with all CPUs while the others are held has been given them by the program. */
    if (cpus_equal(&has, &m->now))
        memcpy(mask, &m->answered, HY_MIN(bytes, sizeof(m->answered)));
}

/* A program that puts back what it was told, now or before, asks for nothing; nor does one that
 * goes back to all CPUs when nothing is capped. All CPUs while there is a cap is a wish. */
static bool puts_back(const struct hy_cpus *mask)
{
    const struct masks *m = masks();

    if (cpus_equal(mask, &m->base))
        return have_base && !threadcap_active();
    for (unsigned i = 0; i < STATES; i++)
        if (states[i].cap && cpus_equal(mask, &states[i].answered))
            return true;
    return false;
}

void threadcap_was_set(pid_t tid)
{
    struct hy_cpus has;

    if (!is_ours(tid))
        return;
    if (tid == 0)
        tid = os_gettid();
    if (cpu_get(tid, &has) == 0 && puts_back(&has)) {
        change_own(tid, 0);
        if (!cpus_equal(&has, &masks()->now))
            (void)cpu_set(tid, &masks()->now);
        return;
    }
    note_own(tid);
}

bool threadcap_open(void)
{
    if (HY_LIKELY(!threadcap_active()))
        return false;
    const struct masks *m = masks();
    /* The mask decides, not the thread's number: one that was made by a pinned thread, or is
     * a child of vfork, has a mask of the user's as well. */
    return !runtime_is_sandboxed() && !cpus_equal(&m->now, &m->base) && has_mask(&m->now) &&
           cpu_set(0, &m->base) == 0;
}

void threadcap_close(bool opened)
{
    if (opened)
        (void)cpu_set(0, &masks()->now);
}
