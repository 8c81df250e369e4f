/* SPDX-License-Identifier: BSD-2-Clause
 * How many threads this process shall use at a time, by where its data are and what is known
 * of it: the user's word, the profile's count for that memory, or what was found. One that
 * is not confined is told of the CPUs that confined ones leave. See threadcap.h. */
#include <string.h>

#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "place/policy.h"
#include "settings/settings.h"
#include "sys/os.h"
#include "sys/usage.h"
#include "threads/check.h"
#include "threads/confine.h"
#include "threads/pacing.h"
#include "threads/search.h"

/* Of its bytes on PM, in percent: as on PM from here on, and until below there. */
#define PM_FROM  50u
#define PM_UNTIL 35u
/* CPU time in which a program without threads may still size its pool. */
#define YOUNG_NS 5000000000ull

static struct {
    bool ended, asked, on_pm;
    bool capped;   /* by a number of its own, not by what others leave */
    unsigned left; /* CPUs that the others leave, 0: all */
    unsigned live, most, running_milli;
    uint64_t cpu_ns, now_ns; /* at the last tick */
} count;

/* How many threads the settings or the profile want with the data there; 0: nobody knows. */
static unsigned wanted(enum hy_tier t)
{
    const struct hy_thread_spec *s = &hy_config.set.threads;
    if (s->off)
        return 0;
    if (t == HY_PM && s->count)
        return s->count;
    if (!hy_config.have_profile || (t == HY_PM && threadcheck_given_up()))
        return 0;
    return hy_config.profile.threads[t];
}

bool threadcap_possible(void)
{
    return wanted(HY_PM) || wanted(HY_DRAM) || threadsearch_possible() || pacing_possible();
}

static bool has_second_memory(void)
{
    const struct hy_settings *s = &hy_config.set;
    if (s->pm.kind == HY_PM_NONE || s->policy == HY_POLICY_OFF)
        return false;
    return s->pm.kind != HY_PM_AUTO || !topology_single_node("/sys");
}

/* Before anything is allocated: where will most of it be? false: that is not known. */
static bool foreseen(enum hy_tier *ret)
{
    const struct hy_settings *s = &hy_config.set;
    uint64_t footprint = hy_config.have_profile ? hy_config.profile.footprint : 0;
    uint64_t dram = s->dram.is_percent ? (s->dram.value ? UINT64_MAX : 0) : s->dram.value;

    if (s->policy == HY_POLICY_DRAM || s->policy == HY_POLICY_PM) {
        *ret = s->policy == HY_POLICY_PM ? HY_PM : HY_DRAM;
        return true;
    }
    if (dram == 0 || footprint > 0) {
        *ret = dram == 0 || dram < footprint / 2 ? HY_PM : HY_DRAM;
        return true;
    }
    return false;
}

/* --- the CPUs of others --------------------------------------------------------------- */

/* A process that is not confined leaves the CPUs of confined ones to them, unless less than its
 * share would be left. How many that are; 0: all. */
static unsigned cpus_left(const struct cpus_of_others *o)
{
    struct hy_cpus base, left;
    unsigned n;

    if (o->confined == 0 || !threadcap_base(&base))
        return 0;
    left = base;
    for (size_t i = 0; i < HY_ARRAY_SIZE(left.word); i++)
        left.word[i] &= ~o->all.word[i];
    n = cpus_count(&left);
    if (n == cpus_count(&base) || n * (o->confined + 1) < cpus_count(&base))
        return 0;
    return n;
}

/* No more threads than the number need no confinement to keep to it. But a runtime that asks the
 * kernel past our hooks (LLVM's OpenMP, Go) sizes its pool by the confinement alone. */
static bool needs_confining(unsigned n)
{
    return count.live > n || (count.most <= 1 && count.cpu_ns < YOUNG_NS);
}

static void cap(enum hy_tier t, unsigned n, const struct cpus_of_others *o)
{
    count.capped = true;
    count.left = cpus_left(o);
    if (t == HY_DRAM && count.left)
        n = HY_MIN(n, count.left);
    threadcap_confine(
        n, needs_confining(n) && !threadcheck_opens() ? n : 0, t == HY_DRAM ? &o->all : &o->elders,
        t == HY_DRAM ? "the best number with its data on DRAM" : "as most data are on PM");
}

/* Nothing is known against using all CPUs. */
static void offer(const struct cpus_of_others *o)
{
    count.capped = false;
    count.left = cpus_left(o);
    threadcap_confine(count.left, 0, &o->all,
                      count.left ? "as others are kept to the other CPUs" : "all CPUs again");
}

/* --- when ------------------------------------------------------------------------------ */

void threadcap_begin(void)
{
    struct cpus_of_others o;
    enum hy_tier t;

    /* The threads to come inherit it. */
    if (!hy_config.have_profile && !hy_config.set.threads.count)
        return;
    if (!has_second_memory() || !foreseen(&t) || wanted(t) == 0 || !runtime_lets_threads())
        return;
    (void)policy_peek_cpus(&o);
    count.asked = true;
    count.on_pm = t == HY_PM;
    cap(t, wanted(t), &o);
}

/* Tell the others which CPUs are meant to be this process's, and learn which are theirs. */
static void exchange(struct cpus_of_others *ret)
{
    struct hy_cpus mine = {{0}};
    if (count.capped)
        threadcap_answered(&mine);
    policy_exchange_cpus(&mine, ret);
}

void threadcap_engaged(void)
{
    struct cpus_of_others o;
    if (count.capped)
        exchange(&o); /* those that start now shall know */
}

static void count_threads(void)
{
    struct os_usage usage;
    uint64_t now = os_now_ns();

    count.live = runtime_program_threads();
    count.most = HY_MAX(count.most, count.live);
    if (os_usage(&usage) < 0)
        return;
    if (count.now_ns && now > count.now_ns)
        count.running_milli =
            (unsigned)((usage.cpu_ns - count.cpu_ns) * 1000 / (now - count.now_ns));
    count.cpu_ns = usage.cpu_ns;
    count.now_ns = now;
}

void threadcap_tick(void)
{
    struct policy_view v;
    struct cpus_of_others o;
    unsigned n, held, paced;
    uint64_t all;

    count_threads();
    if (hy_config.set.threads.off || count.ended)
        return;
    policy_get(&v);
    all = v.used[HY_DRAM] + v.used[HY_PM];
    if (all < hy_config.set.start || all == 0)
        return; /* too little to tell: as it is */
    exchange(&o);
    count.on_pm = v.used[HY_PM] / (all / 100 + 1) >= (count.on_pm ? PM_UNTIL : PM_FROM);
    threadsearch_on_pm(count.on_pm);
    n = wanted(count.on_pm ? HY_PM : HY_DRAM);
    paced = pacing_count();
    if (n) {
        cap(count.on_pm ? HY_PM : HY_DRAM, paced ? HY_MIN(n, paced) : n, &o);
        return;
    }
    threadsearch_counts(&n, &held);
    if (paced) {
        count.capped = false;
        threadcap_confine(0, paced, &o.elders, "as more of them hold up another program");
        return;
    }
    if (n || held) {
        count.capped = n != 0;
        threadcap_confine(n, held, &o.elders, "as PM serves no more");
    } else {
        offer(&o);
    }
}

/* The control thread has joined the registry: what others leave is known before the program's
 * first question. */
void threadcap_joined(void)
{
    struct cpus_of_others o;
    if (hy_config.set.threads.off || __atomic_exchange_n(&count.asked, true, __ATOMIC_ACQ_REL))
        return;
    exchange(&o);
    if (o.confined > 0 && has_second_memory())
        offer(&o);
}

/* A program sizes its threads by the answer: what others leave must be known before. Once; later
 * the control thread keeps it up to date. */
void threadcap_before_question(void)
{
    struct cpus_of_others o;

    if (HY_LIKELY(__atomic_load_n(&count.asked, __ATOMIC_RELAXED)) ||
        __atomic_exchange_n(&count.asked, true, __ATOMIC_ACQ_REL))
        return;
    if (count.ended || hy_config.set.threads.off || runtime_state() == HY_PASSIVE ||
        runtime_is_sandboxed() || !policy_peek_cpus(&o) || !has_second_memory())
        return;
    offer(&o);
}

void threadcap_before_set(void)
{
    struct hy_cpus unused;
    threadcap_before_question();
    if (runtime_state() != HY_PASSIVE && !hy_config.set.threads.off)
        (void)threadcap_base(&unused);
}

void threadcap_end(void)
{
    static const struct hy_cpus none;
    count.ended = true;
    if (threadcap_active())
        threadcap_confine(0, 0, &none, "all CPUs again");
}

void threadcap_child(bool placed)
{
    memset(&count, 0, sizeof(count));
    confine_forget_created();
    if (!placed)
        return;
    confine_child();
    threadsearch_child();
}

void threadcap_get(struct threadcap_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    threadcap_count(ret);
    ret->left = count.left;
    ret->live = runtime_program_threads();
    ret->most = HY_MAX(count.most, ret->live);
    ret->running_milli = count.running_milli;
}
