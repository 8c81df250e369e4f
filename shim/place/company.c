/* SPDX-License-Identifier: BSD-2-Clause
 * This process's part of the DRAM that all share: what it has claimed in the registry, and what
 * it wishes for. The registry costs system calls, and may make its caller wait: threads of ours
 * ask it, a constructor, and the end. Threads of the program live on what is claimed. */
#include "place/company.h"

#include <stdio.h>
#include <string.h>

#include "core/control.h"
#include "core/pause.h"
#include "heap/heap.h"
#include "place/admission.h"
#include "place/company_internal.h"
#include "place/floor.h"
#include "place/policy.h"
#include "place/registry.h"
#include "place/shares.h"
#include "settings/rules/options.h"
#include "settings/settings.h"
#include "sys/lock.h"
#include "sys/log.h"
#include "sys/os.h"

struct hy_lock company_lock;

/* This thread is ours, and may ask the registry. */
static __thread bool ours __attribute__((tls_model("initial-exec")));
/* The claim that this thread of the program was short of. */
static __thread uint64_t short_of __attribute__((tls_model("initial-exec")));

#define MACHINE_AGE_READS 50
#define RETRY_NS          1000000ull
#define AHEAD_PART        4
#define FIRST_PART        32
#define LEAVE_TRIES       20
#define WISH_HOLD_NS      (5ull * 1000000000) /* a wish outlives its last addition by this */

/* --- the registry ------------------------------------------------------------- */

/* What is charged and not claimed: from before the joining, or by force. As much of it as the
 * others leave. */
static void claim_rest_locked(void)
{
    uint64_t used = load(&hy_pol.used[HY_DRAM]), have = load(&hy_pol.claimed);
    uint64_t need = used > hy_pol.inherited ? used - hy_pol.inherited : 0;
    for (uint64_t part = need; have < need && part >= HEAP_CHUNK;) {
        part = HY_MIN(part, need - have);
        if (registry_claim_dram(hy_pol.reg, part) == 0)
            have += part;
        else
            part /= 2;
    }
    store(&hy_pol.claimed, have);
}

/* What a small program needs: it shall not have to wait for a thread of ours. */
static uint64_t first_part(void)
{
    return HY_MAX(hy_pol.lease / FIRST_PART, (uint64_t)HEAP_CHUNK);
}

static void claim_first_locked(void)
{
    if (registry_claim_dram(hy_pol.reg, first_part()) == 0)
        store(&hy_pol.claimed, load(&hy_pol.claimed) + first_part());
}

void company_join_locked(void)
{
    static bool was_joined;
    if (hy_pol.reg_state != REG_NOT_YET)
        return;
    hy_pol.reg_state = REG_NONE;
    store(&hy_pol.claimed, ALONE);
    if (!hy_pol.reg) /* the user's, who may be another one than when placement began */
        share_path(hy_pol.reg_path, sizeof(hy_pol.reg_path));
    if (!hy_pol.reg_path[0])
        return;
    int e = hy_pol.reg ? 0 : registry_open(hy_pol.reg_path, hy_pol.shared, &hy_pol.reg);
    if (e == 0)
        e = registry_join(hy_pol.reg, (enum hy_class)hy_pol.cls);
    if (e == 0) {
        hy_pol.reg_state = REG_JOINED;
        was_joined = true;
        store(&hy_pol.claimed, 0);
        claim_rest_locked();
        claim_first_locked();
        registry_read(hy_pol.reg, &hy_pol.view);
        if (hy_pol.view.dram_budget != hy_pol.shared) {
            log_info("the registry's DRAM budget is %llu MiB; it goes for all",
                     (unsigned long long)(hy_pol.view.dram_budget >> 20));
            hy_pol.shared = hy_pol.view.dram_budget;
        }
        return;
    }
    (void)snprintf(hy_pol.reg_error, sizeof(hy_pol.reg_error), "%s", registry_problem(e));
    if (was_joined) /* the program has changed its rights or its root since */
        log_info("registry %s cannot be joined again (%s)", hy_pol.reg_path, registry_problem(e));
    else
        settings_error_once(
            OPT_REGISTRY, "registry %s cannot be used (%s); this process places memory on its own",
            hy_pol.reg_path, registry_problem(e));
}

unsigned company_read_locked(uint64_t max_age_ns)
{
    uint64_t now = os_now_ns();
    if (hy_pol.machine_ns && max_age_ns &&
        now - hy_pol.machine_ns < HY_MAX(max_age_ns, hy_pol.read_cost_ns * MACHINE_AGE_READS))
        return hy_pol.self;
    registry_read(hy_pol.reg, &hy_pol.view);
    hy_pol.machine_ns = os_now_ns();
    hy_pol.read_cost_ns = hy_pol.machine_ns - now;
    hy_pol.self = shares_machine(&hy_pol.view, &hy_pol.machine);
    return hy_pol.self;
}

static void publish_locked(void)
{
    hy_pol.published.cls = (enum hy_class)hy_pol.cls;
    hy_pol.published.pm_bytes = load(&hy_pol.used[HY_PM]);
    hy_pol.published.wish_bytes = load(&hy_pol.wish);
    hy_pol.published.asked_bytes = load(&hy_pol.asked);
    admission_publish(&hy_pol.published);
    registry_publish(hy_pol.reg, &hy_pol.published);
}

/* Algorithm 1 for `bytes` more DRAM, over what the control thread read last. What others
 * wish for is not free to us. The claim that follows a yes has the last word. */
static bool may_claim_locked(uint64_t bytes)
{
    unsigned self = hy_pol.self;
    if (hy_pol.policy != HY_POLICY_AUTO || !hy_pol.machine_ns || self >= hy_pol.machine.n_apps)
        return true;
    /* What we hold by now, not what was read a while ago. */
    hy_pol.machine.app[self].dram_bytes = load(&hy_pol.claimed);
    hy_pol.machine.app[self].wish_bytes = load(&hy_pol.wish);
    return placement_decide(&hy_pol.machine, self, bytes).tier == HY_DRAM;
}

/* What was turned away since the last look becomes a wish, where Algorithm 1
 * has one; never more than what lies on PM for it. */
static void wish_locked(void)
{
    uint64_t unmet = __atomic_exchange_n(&hy_pol.unmet, 0, __ATOMIC_RELAXED);
    unsigned self = company_read_locked(COMPANY_AGE_NS);
    if (hy_pol.policy != HY_POLICY_AUTO || !unmet || self >= hy_pol.machine.n_apps)
        return;
    hy_pol.machine.app[self].wish_bytes = load(&hy_pol.wish);
    struct place_decision d = placement_decide(&hy_pol.machine, self, unmet);
    if (d.tier == HY_DRAM || !d.wish_bytes)
        return;
    uint64_t most = load(&hy_pol.used[HY_PM]) + unmet;
    store(&hy_pol.wish, HY_MIN(load(&hy_pol.wish) + d.wish_bytes, most));
    hy_pol.wish_ns = os_now_ns();
    publish_locked();
}

/* Pages that would come up are wished for, however long they have been waiting, and what a profile
 * foresees: Algorithm 1's S is the program's need then. */
static void want_locked(unsigned self)
{
    uint64_t placed = policy_used(), coming = hy_pol.published.need_bytes;
    uint64_t wanted =
        HY_MIN(HY_MAX(load(&hy_pol.wanted), coming - HY_MIN(placed, coming)),
               hy_pol.limit[HY_DRAM] - HY_MIN(load(&hy_pol.used[HY_DRAM]), hy_pol.limit[HY_DRAM]));
    if (hy_pol.policy != HY_POLICY_AUTO || wanted <= load(&hy_pol.wish) ||
        self >= hy_pol.machine.n_apps)
        return;
    hy_pol.machine.app[self].wish_bytes = 0; /* ours: it is made anew */
    store(&hy_pol.wish, HY_MAX(placement_wish(&hy_pol.machine, self, wanted), load(&hy_pol.wish)));
}

static bool claim_locked(uint64_t need)
{
    uint64_t have = load(&hy_pol.claimed);
    if (hy_pol.reg_state != REG_JOINED || need <= have)
        return true;
    uint64_t step = hy_align_up(need - have, hy_pol.lease);
    if (have + step > hy_pol.limit[HY_DRAM])
        step = HY_MAX(hy_pol.limit[HY_DRAM], need) - have;
    if (!may_claim_locked(need - have))
        return false;
    if (registry_claim_dram(hy_pol.reg, step) == 0) {
        store(&hy_pol.claimed, have + step);
        return true;
    }
    if (registry_claim_dram(hy_pol.reg, need - have) == 0) {
        store(&hy_pol.claimed, need);
        return true;
    }
    return false;
}

/* After a refusal, not at once again: a look at all slots costs something. */
static bool claim_or_deny_locked(uint64_t need)
{
    if (claim_locked(need))
        return true;
    store(&hy_pol.denied, need);
    __atomic_store_n(&hy_pol.denied_ns, os_now_ns(), __ATOMIC_RELEASE);
    return false;
}

static bool was_denied(uint64_t need)
{
    uint64_t when = __atomic_load_n(&hy_pol.denied_ns, __ATOMIC_ACQUIRE);
    return when && need >= load(&hy_pol.denied) && os_now_ns() - when < RETRY_NS;
}

static void ask_for(uint64_t need)
{
    uint64_t most = load(&hy_pol.needed);
    while (most < need && !__atomic_compare_exchange_n(&hy_pol.needed, &most, need, true,
                                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    if (!__atomic_exchange_n(&hy_pol.stale, true, __ATOMIC_SEQ_CST))
        control_wake();
}

bool share_cover(uint64_t total)
{
    uint64_t need = total > hy_pol.inherited ? total - hy_pol.inherited : 0;
    uint64_t claimed = load(&hy_pol.claimed), ahead = need + hy_pol.lease / AHEAD_PART;
    ahead = HY_MIN(ahead, HY_MAX(hy_pol.limit[HY_DRAM], need)); /* more is never used */
    if (HY_LIKELY(need <= claimed)) {
        if (HY_UNLIKELY(ahead > claimed) && !ours && control_running() && !was_denied(ahead))
            ask_for(ahead); /* so that nobody has to wait */
        return true;
    }
    if (was_denied(need))
        return false;
    if (ours) {
        hy_lock_take(&company_lock);
        bool ok = claim_or_deny_locked(need);
        hy_lock_release(&company_lock);
        return ok;
    }
    short_of = need;
    ask_for(need);
    return false;
}

uint64_t policy_short_of(void)
{
    uint64_t need = short_of;
    short_of = 0;
    return need;
}

enum claim_answer policy_claim_answer(uint64_t need)
{
    if (need <= load(&hy_pol.claimed))
        return CLAIM_MADE;
    if (was_denied(need))
        return CLAIM_DENIED;
    ask_for(need); /* again: it is not as much as was denied */
    return CLAIM_OPEN;
}

void policy_thread_is_ours(void)
{
    ours = true;
}

/* The pages that a fork left us with count with the parent, until it has ended: then they are
 * ours, as far as the others leave room; the rest is asked for again. */
static void claim_inherited_locked(void)
{
    int parent = os_parent_pid();
    if (hy_pol.inherited == 0 || parent == hy_pol.parent ||
        parent == 0) /* 0: beyond its namespace */
        return;
    uint64_t used = load(&hy_pol.used[HY_DRAM]);
    hy_pol.inherited = HY_MIN(hy_pol.inherited, used);
    uint64_t step = hy_pol.inherited;
    while (step >= HEAP_CHUNK && registry_claim_dram(hy_pol.reg, step) != 0)
        step /= 2;
    if (step < HEAP_CHUNK)
        return;
    store(&hy_pol.claimed, load(&hy_pol.claimed) + step);
    hy_pol.inherited -= step;
}

static void give_back_locked(void)
{
    uint64_t used = load(&hy_pol.used[HY_DRAM]), have = load(&hy_pol.claimed);
    uint64_t need = used > hy_pol.inherited ? used - hy_pol.inherited : 0;
    if (load(&hy_pol.asked) == 0) /* by others: then all of it */
        need += first_part();
    if (hy_pol.reg_state != REG_JOINED || have <= need)
        return;
    store(&hy_pol.claimed, need);
    registry_return_dram(hy_pol.reg, have - need);
}

bool share_short(void)
{
    return short_of != 0;
}

void share_spare(void)
{
    if (!ours) {
        ask_for(0);
        return;
    }
    hy_lock_take(&company_lock);
    give_back_locked();
    hy_lock_release(&company_lock);
}

uint64_t policy_dram_share(void)
{
    uint64_t share = hy_pol.limit[HY_DRAM];
    hy_lock_take(&company_lock);
    company_join_locked();
    if (hy_pol.reg_state == REG_JOINED) {
        unsigned self = company_read_locked(COMPANY_AGE_NS);
        share = HY_MIN(share, hy_pol.inherited +
                                  placement_share(&hy_pol.machine, self, load(&hy_pol.asked)));
    }
    hy_lock_release(&company_lock);
    return share;
}

bool policy_may_ask(uint64_t *ret_held, uint64_t *ret_ahead)
{
    *ret_held = *ret_ahead = 0;
    hy_lock_take(&company_lock);
    company_join_locked();
    bool may = hy_pol.reg_state == REG_JOINED && hy_pol.policy == HY_POLICY_AUTO;
    if (may) {
        unsigned self = company_read_locked(COMPANY_AGE_NS);
        *ret_ahead = placement_ahead(&hy_pol.machine, self);
        may = placement_may_ask(&hy_pol.machine, self);
        *ret_held = UINT64_MAX / 2 - shares_given();
    }
    hy_lock_release(&company_lock);
    return may;
}

/* --- by the control thread --------------------------------------------------------- */

bool policy_has_registry(void)
{
    return hy_pol.reg_path[0] != '\0';
}

void policy_join(void)
{
    hy_lock_take(&company_lock);
    company_join_locked();
    if (hy_pol.reg_state == REG_JOINED)
        (void)company_read_locked(0);
    hy_lock_release(&company_lock);
}

/* What nobody needs for a while goes back; the tick gives back the rest. */
static bool much_to_spare(void)
{
    uint64_t used = load(&hy_pol.used[HY_DRAM]), have = load(&hy_pol.claimed);
    return have > (used > hy_pol.inherited ? used - hy_pol.inherited : 0) + 4 * hy_pol.lease;
}

bool policy_refresh(void)
{
    if (!__atomic_exchange_n(&hy_pol.stale, false, __ATOMIC_SEQ_CST))
        return false;
    hy_lock_take(&company_lock);
    uint64_t need = __atomic_exchange_n(&hy_pol.needed, 0, __ATOMIC_ACQUIRE);
    if (hy_pol.reg_state == REG_JOINED) {
        (void)company_read_locked(COMPANY_AGE_NS);
        if (!claim_or_deny_locked(need))
            wish_locked();
        else if (need)
            store(&hy_pol.unmet, 0);
        else if (much_to_spare())
            give_back_locked();
    }
    hy_lock_release(&company_lock);
    return true;
}

void share_tick(void)
{
    hy_lock_take(&company_lock);
    company_join_locked(); /* also without DRAM: the others shall see us */
    if (hy_pol.reg_state == REG_JOINED) {
        unsigned self = company_read_locked(0);
        hy_pol.published.threads = runtime_program_threads();
        if (!registry_joined(hy_pol.reg)) /* our slot was lost: take a new one */
            hy_pol.reg_state = REG_NOT_YET;
        shares_divide(&hy_pol.view, self);
        uint64_t free = floor_on() ? floor_dram_left() : UINT64_MAX;
        store(&hy_pol.asked,
              HY_MAX(placement_asked_of(&hy_pol.machine, self, free), shares_asked()));
        if (os_now_ns() - hy_pol.wish_ns > WISH_HOLD_NS)
            store(&hy_pol.wish, 0);
        wish_locked();
        want_locked(self);
        claim_inherited_locked();
        claim_rest_locked();
        give_back_locked();
        publish_locked();
    }
    hy_lock_release(&company_lock);
}

bool share_look(share_see_fn see)
{
    hy_lock_take(&company_lock);
    company_join_locked();
    bool in = hy_pol.reg_state == REG_JOINED;
    if (in) {
        publish_locked(); /* first: of two that look, one sees the other at least */
        unsigned self = company_read_locked(0);
        in = self < hy_pol.machine.n_apps;
        if (in)
            see(&hy_pol.view, &hy_pol.machine, self);
        publish_locked();
    }
    hy_lock_release(&company_lock);
    return in;
}

void policy_publish(const struct registry_published *published)
{
    hy_lock_take(&company_lock);
    uint32_t threads = hy_pol.published.threads;
    hy_pol.published = *published;
    hy_pol.published.threads = threads;
    hy_lock_release(&company_lock);
}

void policy_look(void (*look)(void *ctx, const struct registry_view *v), void *ctx)
{
    hy_lock_take(&company_lock);
    if (hy_pol.reg_state == REG_JOINED) {
        (void)company_read_locked(COMPANY_AGE_NS);
        look(ctx, &hy_pol.view);
    }
    hy_lock_release(&company_lock);
}

/* --- life cycle ------------------------------------------------------------------------ */

/* At exit, in a thread of the program. Ours may be asking the registry: then the kernel tells the
 * others of our end. */
void policy_leave(void)
{
    for (int i = 0; !hy_lock_try(&company_lock); i++) {
        if (i == LEAVE_TRIES)
            return;
        os_sleep_ns(RETRY_NS);
    }
    /* The lock of a slot that a thread with descriptors of its own has taken goes with that thread:
     * nobody else could leave it, and the others will see. */
    if (hy_pol.reg_state == REG_JOINED && !control_apart())
        registry_leave(hy_pol.reg);
    hy_pol.reg_state = REG_NONE;
    store(&hy_pol.claimed, ALONE);
    hy_lock_release(&company_lock);
}

void policy_prefork(void)
{
    hy_lock_prefork(&company_lock);
}

void policy_postfork(void)
{
    hy_lock_postfork(&company_lock);
}

/* The child shares these pages until one of them writes: they count once, with the parent. */
void policy_child(bool placed)
{
    if (placed)
        shares_child();
    hy_pol.inherited = load(&hy_pol.used[HY_DRAM]);
    hy_pol.parent = os_noted_pid(); /* the child may be an orphan before it can ask */
    hy_pol.born_with = policy_used();
    store(&hy_pol.claimed, ALONE); /* until its control thread joins */
    store(&hy_pol.needed, 0);
    store(&hy_pol.denied_ns, 0);
    store(&hy_pol.wish, 0);
    store(&hy_pol.wanted, 0);
    store(&hy_pol.asked, 0);
    __atomic_store_n(&hy_pol.stale, false, __ATOMIC_RELAXED);
    hy_pol.published = (struct registry_published){.threads = 1};
    ours = false;
    if (hy_pol.reg && !runtime_is_sandboxed()) /* else it gets no thread that could join */
        registry_after_fork_child(hy_pol.reg);
    if (hy_pol.reg_state == REG_JOINED)
        hy_pol.reg_state = REG_NOT_YET;
}
