/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/admission.h"

#include <stdio.h>
#include <string.h>

#include "place/company.h"
#include "place/policy.h"
#include "place/rules/admission.h"
#include "settings/settings.h"
#include "sys/env.h"
#include "sys/log.h"
#include "sys/os.h"

static struct {
    bool pending; /* atomic: written by who asks the registry, read by who waits */
    uint64_t began_ns, arrived_ns, until_ns;
    bool guessed, on_pm; /* where the data will be, before there are any */
    int32_t pid;         /* waited for */
    char name[16];
    uint64_t waited_ns;
    const char *why;
} state = {.why = "HYBRID_ADMISSION=off"};

static const char helper_text[] = "a helper of one that was asked";

/* --- what is known of this process ---------------------------------------------------- */

static const struct profile *profile(void)
{
    return hy_config.have_profile ? &hy_config.profile : NULL;
}

static bool writes_by_profile(void)
{
    return profile() && profile()->write_intensive == 1;
}

static uint64_t footprint(void)
{
    return profile() ? profile()->footprint : 0;
}

static bool now_on_pm(void)
{
    uint64_t dram = load(&hy_pol.used[HY_DRAM]), pm = load(&hy_pol.used[HY_PM]);
    return state.guessed && dram + pm < footprint() / 2 ? state.on_pm : pm > dram;
}

void admission_publish(struct registry_published *published)
{
    published->marks &= REGISTRY_WRITES; /* as the counters say */
    if (writes_by_profile())
        published->marks |= REGISTRY_WRITES;
    if (now_on_pm())
        published->marks |= REGISTRY_ON_PM;
    if (state.began_ns)
        published->marks |= REGISTRY_ASKED;
    published->arrived_ns = admission_pending() ? state.arrived_ns : 0;
}

/* --- to wait or not --------------------------------------------------------------------- */

bool admission_wanted(void)
{
    enum hy_class cls = settings_class();

    if (hy_config.set.admission == 0)
        return false;
    if (cls == HY_CLASS_UNKNOWN && !writes_by_profile())
        state.why = "neither HYBRID_CLASS nor a profile tells of this program";
    else if (cls != HY_CLASS_BANDWIDTH && !writes_by_profile())
        state.why = "it suffers little, and writes little to PM";
    else if (hy_config.set.cls != HY_CLASS_UNKNOWN && env_parent_has_same())
        state.why = helper_text;
    else
        return true;
    return false;
}

static void decide(const char *why)
{
    state.waited_ns = os_now_ns() - state.began_ns;
    state.why = why;
    __atomic_store_n(&state.pending, false, __ATOMIC_RELEASE);
}

void admission_begin(void)
{
    uint64_t now = os_now_ns(), age = os_process_age_ns();

    /* A program that took the place of one that waited (exec) keeps its place in line, and waits
     * no longer than it. */
    state.began_ns = now;
    state.arrived_ns = now > age ? now - age : 1;
    state.until_ns = state.arrived_ns + hy_config.set.admission;
    __atomic_store_n(&state.pending, true, __ATOMIC_RELEASE);
}

bool admission_pending(void)
{
    return __atomic_load_n(&state.pending, __ATOMIC_ACQUIRE);
}

void admission_give_up(const char *why)
{
    if (admission_pending())
        decide(why);
}

void admission_child(void)
{
    state.pending = false;
    state.began_ns = 0;
}

static void guess(const struct place_machine *m, unsigned self)
{
    uint64_t dram = HY_MIN(hy_pol.limit[HY_DRAM], load(&hy_pol.claimed) + placement_free(m, self));

    state.on_pm = hy_pol.policy == HY_POLICY_PM ||
                  (hy_pol.policy != HY_POLICY_DRAM && admission_on_pm(footprint(), dram));
    state.guessed = true;
}

static void waits_for(const struct registry_entry *e)
{
    if (state.pid != e->pid)
        log_info("waiting for %s (%d), as one of the two would hinder the other: %llu s at most",
                 e->name, e->pid, (unsigned long long)(hy_config.set.admission / 1000000000));
    state.pid = e->pid;
    memcpy(state.name, e->name, sizeof(state.name));
}

static void judge(const struct registry_view *v, const struct place_machine *m, unsigned self)
{
    static struct admission_party party[REGISTRY_SLOTS]; /* under the lock of company.c */
    uint64_t now = os_now_ns();
    bool helper = false;

    for (unsigned i = 0; i < v->n; i++) {
        const struct registry_published *t = &v->entry[i].published;
        uint64_t seen_ns = v->entry[i].heartbeat_ns;
        helper |=
            v->entry[i].here && v->entry[i].pid == os_parent_pid() && (t->marks & REGISTRY_ASKED);
        /* A number of another PID namespace may be ours, too: the slot's is nobody else's. */
        int32_t pid = v->entry[i].here ? v->entry[i].pid : -1 - (int32_t)v->entry[i].slot;
        party[i] = (struct admission_party){.pid = pid,
                                            .cls = t->cls,
                                            .writes = t->marks & REGISTRY_WRITES,
                                            .on_pm = t->marks & REGISTRY_ON_PM,
                                            .arrived_ns = t->arrived_ns,
                                            .age_ns = now > seen_ns ? now - seen_ns : 0};
    }
    guess(m, self);
    party[self].on_pm = state.on_pm;
    party[self].arrived_ns = state.arrived_ns;
    unsigned other = admission_waits_for(party, v->n, self);
    if (helper)
        other = v->n;
    if (other < v->n)
        waits_for(&v->entry[other]);
    if (other == v->n)
        decide(helper      ? helper_text
               : state.pid ? "the one that it waited for has ended, or does not hinder any more"
                           : "nobody hinders it, nor does it hinder anybody");
    else if (now >= state.until_ns)
        decide("it waited as long as HYBRID_ADMISSION allows");
}

void admission_look(void)
{
    if (!admission_pending())
        return;
    if (!share_look(judge))
        decide("it is not in the registry");
    else if (!admission_pending())
        log_info("begins after %llu ms: %s", (unsigned long long)(state.waited_ns / 1000000),
                 state.why);
}

void admission_get(struct admission_view *ret)
{
    *ret = (struct admission_view){.asked = hy_config.set.admission != 0,
                                   .waited_ns = state.waited_ns,
                                   .limit_ns = hy_config.set.admission,
                                   .pid = state.pid,
                                   .why = state.why};
    memcpy(ret->name, state.name, sizeof(ret->name));
}
