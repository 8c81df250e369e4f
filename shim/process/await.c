/* SPDX-License-Identifier: BSD-2-Clause
 * What threads of the program wait for, and the control thread answers: PM, and claims of DRAM. */
#include "base/guard.h"
#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "heap/supply.h"
#include "place/admission.h"
#include "place/floor.h"
#include "place/policy.h"
#include "process/process.h"
#include "sys/lock.h"
#include "sys/os.h"

#define AWAIT_NS   100000000ull  /* for PM, when memkind is there */
#define LOAD_NS    500000000ull  /* and when it must be loaded, once */
#define CLAIM_NS   500000000ull  /* for a claim: our thread may have to wait for a busy processor */
#define LATE_NS    5000000000ull /* none is waited for so long after one that came too late */
#define REFUSED_NS 20000000ull   /* PM that was not to be had is not asked for again for so long */
#define RETRY_NS   1000000000ull /* for what was not there when nobody waited */

/* --- PM for those who wait for it ------------------------------------------------------ */

static struct {
    uint64_t wanted;     /* bytes in one piece */
    uint32_t answers;    /* what waiting threads sleep on */
    uint64_t refused;    /* so much was not to be had */
    uint64_t refused_ns; /* when */
    bool gave_up;        /* memkind did not come in time: it may wait for who waited */
} pm;

static __thread bool pm_short __attribute__((tls_model("initial-exec")));

void control_note_short(void)
{
    pm_short = true;
}

/* PM before it is waited for, unless the kernel gives it: when what is ready comes to its end, or
 * half the DRAM is used and as much again would be more than that. */
static bool soon_needed(void)
{
    struct policy_view v;
    if (floor_on())
        return false;
    if (supply_runs_low())
        return true;
    policy_get(&v);
    return !supply_loaded() && v.used[HY_DRAM] > v.limit[HY_DRAM] / 2 &&
           supply_is_short(v.used[HY_DRAM]);
}

static void serve_pm(void)
{
    uint64_t want = __atomic_exchange_n(&pm.wanted, 0, __ATOMIC_ACQ_REL);
    if (!want && !(soon_needed() && os_now_ns() - pm.refused_ns > RETRY_NS))
        return;
    want = want ? want : HY_MIB;
    if (engage_pm(want)) {
        __atomic_store_n(&pm.refused, want, __ATOMIC_RELAXED);
        __atomic_store_n(&pm.refused_ns, os_now_ns(), __ATOMIC_RELEASE);
    }
    __atomic_add_fetch(&pm.answers, 1, __ATOMIC_SEQ_CST);
    os_wake_word(&pm.answers);
}

static bool was_refused(size_t bytes)
{
    return bytes >= __atomic_load_n(&pm.refused, __ATOMIC_RELAXED) &&
           os_now_ns() - __atomic_load_n(&pm.refused_ns, __ATOMIC_ACQUIRE) < REFUSED_NS;
}

/* No lock is held here, and the wait is bounded: the thread may hold the loader's lock. */
static bool await_pm(size_t bytes)
{
    if (!pm_short)
        return false;
    pm_short = false;
    if (runtime_state() != HY_STEERING || hy_guarded() || was_refused(bytes) || pause_is_copy() ||
        (pm.gave_up && !supply_loaded()))
        return false;
    (void)control_start();
    if (!control_running())
        return false;
    uint64_t most = __atomic_load_n(&pm.wanted, __ATOMIC_RELAXED), now = os_now_ns();
    uint64_t until = now + (supply_loaded() ? AWAIT_NS : LOAD_NS);
    while (most < bytes && !__atomic_compare_exchange_n(&pm.wanted, &most, bytes, true,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    control_wake();
    for (; now < until; now = os_now_ns()) {
        uint32_t seen = __atomic_load_n(&pm.answers, __ATOMIC_SEQ_CST);
        if (!supply_is_short(bytes))
            return true;
        if (was_refused(bytes) || runtime_state() != HY_STEERING)
            return false;
        os_wait_word(&pm.answers, seen, until - now);
    }
    pm.gave_up |= !supply_loaded();
    return false;
}

/* --- a claim for those who wait for it --------------------------------------------------- */

static uint32_t claim_answers; /* what waiting threads sleep on */
static uint64_t claim_late_ns; /* when one was not answered in time */

/* The thread may be waiting for a lock of the program's allocator, which waits here. */
static bool await_claim(uint64_t need)
{
    uint64_t now = os_now_ns(), until = now + CLAIM_NS;
    if (runtime_state() != HY_STEERING || hy_guarded() || pause_is_copy() ||
        now - __atomic_load_n(&claim_late_ns, __ATOMIC_RELAXED) < LATE_NS)
        return false;
    if (!hy_locks_held())
        (void)control_start();
    if (!control_running())
        return false;
    control_wake(); /* it may have begun to doze before it was said to be running */
    for (; now < until; now = os_now_ns()) {
        uint32_t seen = __atomic_load_n(&claim_answers, __ATOMIC_SEQ_CST);
        enum claim_answer answer = policy_claim_answer(need);
        if (answer != CLAIM_OPEN)
            return answer == CLAIM_MADE;
        if (runtime_state() != HY_STEERING)
            return false;
        os_wait_word(&claim_answers, seen, until - now);
    }
    __atomic_store_n(&claim_late_ns, now, __ATOMIC_RELAXED);
    return false;
}

bool control_await(enum hy_tier t, size_t bytes)
{
    if (runtime_is_sandboxed()) /* nor is it asked what time it is (control_poke) */
        return false;
    if (t == HY_PM)
        return await_pm(bytes);
    uint64_t need = policy_short_of();
    if (!need)
        return false;
    bool ok = await_claim(need);
    if (!ok)
        policy_turned_away(t);
    return ok;
}

static void serve_claims(void)
{
    if (!policy_refresh())
        return;
    __atomic_add_fetch(&claim_answers, 1, __ATOMIC_SEQ_CST);
    os_wake_word(&claim_answers);
}

void await_serve(void)
{
    serve_pm();
    serve_claims();
    admit_serve();
}

void await_child(void)
{
    admission_child();
    pm.wanted = pm.refused_ns = claim_late_ns = 0;
}
