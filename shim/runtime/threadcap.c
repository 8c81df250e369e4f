/* SPDX-License-Identifier: BSD-2-Clause
 * Confinement to fewer CPUs. See threadcap.h. */
#include "runtime/threadcap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decide/cpus.h"
#include "runtime/internal.h"
#include "service/cpu_facts.h"
#include "sys/cpu.h"
#include "sys/log.h"
#include "sys/os.h"

#define OWN_MAX 1024 /* threads with an affinity of their own; beyond: found by their mask */
/* Of its bytes on PM, in percent: capped from here on, and until below there. */
#define CAP_FROM  50u
#define CAP_UNTIL 35u
/* Threads made while the others are confined inherit either mask: list them again. */
#define ROUNDS 3

uint32_t hy_thread_cap; /* what questions are answered; 0: no cap */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what follows, but `own` */
/* What the process had at first; what questions are answered; what is in force, which is
 * one of the two: a program with no more threads than its cap need not be kept to it. */
static struct hy_cpus base, choice, now;
static bool have_base, ended;
static struct cpu_facts facts[HY_CPUS];
static unsigned n_facts;
static struct hy_cpus taken; /* by capped ones that were here before */
static unsigned changes;
static int32_t own[OWN_MAX]; /* tids, 0: free */

/* How many threads the settings or the profile want with the data on PM; 0: no limit. */
static unsigned wanted(void)
{
    const struct hy_thread_spec *s = &hy_config.set.threads;
    if (s->off)
        return 0;
    if (s->count)
        return s->count;
    return hy_config.have_profile ? hy_config.profile.threads[HY_PM] : 0;
}

/* --- threads with an affinity of their own --------------------------------------- */

static bool is_own(int32_t tid)
{
    for (unsigned i = 0; i < OWN_MAX; i++)
        if (__atomic_load_n(&own[i], __ATOMIC_RELAXED) == tid)
            return true;
    return false;
}

static void note_own(int32_t tid)
{
    if (is_own(tid))
        return;
    for (unsigned i = 0; i < OWN_MAX; i++) {
        int32_t none = 0;
        if (__atomic_compare_exchange_n(&own[i], &none, tid, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return;
    }
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
    if (cpu_set(tid, r->to) == 0)
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

/* Under the lock. count 0: no cap; `confine`: keep the threads to it as well. */
static void apply(unsigned count, bool confine)
{
    struct hy_cpus to;

    if (!have_base) {
        if (cpu_get(0, &base) < 0)
            return; /* refused (seccomp): nothing is capped */
        now = choice = base;
        have_base = true;
    }
    choice = base;
    if (count > 0 && count < cpus_count(&base)) {
        learn_cpus();
        choice = cpus_choose(&base, &taken, facts, n_facts,
                             cpus_turn(&base, (uint32_t)os_pid(), count), count);
    }
    to = confine ? choice : base;
    count = cpus_equal(&choice, &base) ? 0 : cpus_count(&choice);
    if (!cpus_equal(&to, &now)) {
        forget_dead();
        confine_all(&now, &to);
        now = to;
        changes++;
    }
    if (__atomic_exchange_n(&hy_thread_cap, count, __ATOMIC_ACQ_REL) == count)
        return;
    if (count)
        log_info("threads: at most %u at a time, as most data are on PM", count);
    else
        log_info("threads: all CPUs again");
}

static void change_to(unsigned count, bool confine)
{
    pthread_mutex_lock(&lock);
    if (!ended || count == 0)
        apply(count, confine && count > 0);
    pthread_mutex_unlock(&lock);
}

/* --- when ------------------------------------------------------------------------------ */

/* Before anything is allocated: will most of it be on PM? */
static bool will_be_on_pm(void)
{
    const struct hy_settings *s = &hy_config.set;
    uint64_t footprint = hy_config.have_profile ? hy_config.profile.footprint : 0;
    uint64_t dram;

    if (s->pm.kind == HY_PM_NONE || s->policy == HY_POLICY_OFF || s->policy == HY_POLICY_DRAM)
        return false;
    if (s->pm.kind == HY_PM_AUTO && topology_single_node("/sys"))
        return false;
    if (s->policy == HY_POLICY_PM)
        return true;
    dram = s->dram.is_percent ? (s->dram.value ? UINT64_MAX : 0) : s->dram.value;
    return dram == 0 || (footprint > 0 && dram < footprint / 2);
}

void threadcap_begin(void)
{
    unsigned count = wanted();
    /* The threads to come inherit it; whether there are so many is seen later. */
    if (count > 0 && will_be_on_pm())
        change_to(count, true);
}

void threadcap_tick(void)
{
    static const struct hy_cpus none;
    struct policy_view v;
    struct hy_cpus others;
    uint64_t all;
    unsigned count = wanted();

    if (count == 0)
        return;
    policy_get(&v);
    all = v.used[HY_DRAM] + v.used[HY_PM];
    if (all < hy_config.set.start || all == 0)
        return; /* too little to tell: as it is */
    policy_exchange_cpus(threadcap_active() && cpus_equal(&now, &choice) ? &now : &none, &others);
    pthread_mutex_lock(&lock);
    taken = others;
    pthread_mutex_unlock(&lock);
    if (v.used[HY_PM] / (all / 100 + 1) >= (threadcap_active() ? CAP_UNTIL : CAP_FROM))
        change_to(count, os_thread_count() > count + 1); /* less this one */
    else
        change_to(0, false);
}

void threadcap_end(void)
{
    if (threadcap_active())
        change_to(0, false);
    ended = true;
}

void threadcap_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh; /* may have been held in the parent */
    if (!threadcap_active())
        return;
    if (has_mask(&now))
        (void)cpu_set(0, &base);
    now = choice = base;
    __atomic_store_n(&hy_thread_cap, 0, __ATOMIC_RELEASE);
}

void threadcap_get(struct threadcap_view *ret)
{
    *ret = (struct threadcap_view){
        .cap = __atomic_load_n(&hy_thread_cap, __ATOMIC_ACQUIRE),
        .base = have_base ? cpus_count(&base) : 0,
        .times = changes,
    };
    for (unsigned i = 0; i < OWN_MAX; i++)
        ret->left_alone += __atomic_load_n(&own[i], __ATOMIC_RELAXED) != 0;
}

/* --- for the hooks ---------------------------------------------------------------------- */

void threadcap_before_question(void)
{
    if (HY_UNLIKELY(runtime_state() == HY_BOOT))
        runtime_prepare();
}

long threadcap_online(long real)
{
    long cap = (long)__atomic_load_n(&hy_thread_cap, __ATOMIC_ACQUIRE);
    if (HY_LIKELY(cap == 0) || real <= cap || is_own(os_gettid()))
        return real;
    return cap;
}

void threadcap_answer(pid_t tid, void *mask, size_t bytes)
{
    if (HY_LIKELY(!threadcap_active()) || is_own(tid ? tid : os_gettid()))
        return;
    struct hy_cpus has = {{0}};
    memcpy(&has, mask, HY_MIN(bytes, sizeof(has)));
    if (cpus_equal(&has, &base))
        memcpy(mask, &choice, HY_MIN(bytes, sizeof(choice)));
}

void threadcap_was_set(pid_t tid)
{
    struct hy_cpus has;
    if (tid == 0)
        tid = os_gettid();
    /* A program that puts back what it was told asks for nothing. */
    if (threadcap_active() && cpu_get(tid, &has) == 0 && cpus_equal(&has, &choice)) {
        (void)cpu_set(tid, &now);
        return;
    }
    note_own(tid);
}

bool threadcap_open(void)
{
    /* The mask decides, not the thread's number: one that was made by a pinned thread, or is
     * a child of vfork, has a mask of the user's as well. */
    return HY_UNLIKELY(threadcap_active()) && has_mask(&now) && !cpus_equal(&now, &base) &&
           cpu_set(0, &base) == 0;
}

void threadcap_close(bool opened)
{
    if (opened)
        (void)cpu_set(0, &now);
}
