/* SPDX-License-Identifier: BSD-2-Clause
 * Algorithm 1 at work (papers/DIGEST.md, 004): every run of pages asks here
 * whether its tier may hold it. What is charged stays below this process's
 * limit and, through the registry, below the budget that all share. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "decide/placement.h"
#include "runtime/internal.h"
#include "service/heap/heap.h"
#include "sys/log.h"
#include "sys/os.h"

static struct {
    enum hy_policy policy;
    uint8_t cls;
    uint64_t limit[HY_TIERS];
    uint64_t used[HY_TIERS], peak[HY_TIERS], refused[HY_TIERS];
    uint64_t kept; /* of the DRAM limit, for what a plan expects */
    uint64_t forced_bytes;
    uint64_t inherited; /* DRAM shared with the process that forked us */
    uint64_t claimed;   /* of the shared budget, >= used - inherited */
    uint64_t lease;     /* claims are made in steps of this */
    uint64_t shared;    /* the budget of all */
    uint64_t wish, asked;
    struct registry_told told; /* under lock; what is not ours comes by policy_tell */
    uint64_t wanted;           /* pages on PM that would come up, in bytes */
    uint64_t unmet;            /* turned away for lack of shared DRAM, not yet wished for */
    uint64_t wish_ns;          /* of the last addition to the wish */
    uint64_t refused_ns;       /* by whatever: no new claim for RETRY_NS */
    bool closed[HY_TIERS];     /* turned somebody away since it last had room */
    enum { REG_NOT_YET, REG_JOINED, REG_NONE } reg_state; /* written under lock */
    struct registry *reg;
    char reg_path[HY_PATH_MAX], reg_error[96];
    struct registry_view view;    /* under lock */
    struct place_machine machine; /* what was last read of all, and when */
    unsigned self;
    uint64_t machine_ns, read_cost_ns;
} pol;

/* Registry claims and what follows from them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What was read of all serves so long, and for 50 times as long as it took:
 * with many participants a look costs up to a millisecond. */
#define MACHINE_AGE_NS    10000000ull
#define MACHINE_AGE_READS 50
#define RETRY_NS          1000000ull
#define ALONE             (UINT64_MAX / 2) /* claimed: without a registry, nobody need be asked */
#define WISH_HOLD_NS      (5ull * 1000000000) /* a wish outlives its last addition by this */

static uint64_t get(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void put(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static void note_peak(enum hy_tier t, uint64_t now)
{
    uint64_t peak = get(&pol.peak[t]);
    while (now > peak && !__atomic_compare_exchange_n(&pol.peak[t], &peak, now, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static bool yielding(void)
{
    return pol.policy == HY_POLICY_AUTO && pol.cls == HY_CLASS_CPU && get(&pol.asked) > 0;
}

/* --- the registry ------------------------------------------------------------- */

static const char *registry_problem(int e)
{
    switch (e) {
    case -EPROTO:
        return "it is no registry, or of another version";
    case -ENOSPC:
        return "all its slots are taken";
    default:
        return os_error_name(e);
    }
}

static void join_locked(void)
{
    if (pol.reg_state != REG_NOT_YET)
        return;
    pol.reg_state = REG_NONE;
    put(&pol.claimed, ALONE);
    if (!pol.reg_path[0])
        return;
    int e = pol.reg ? 0 : registry_open(pol.reg_path, pol.shared, &pol.reg);
    if (e == 0)
        e = registry_join(pol.reg, (enum hy_class)pol.cls);
    if (e == 0) {
        pol.reg_state = REG_JOINED;
        put(&pol.claimed, 0);
        registry_read(pol.reg, &pol.view);
        if (pol.view.dram_budget != pol.shared) {
            log_info("the registry's DRAM budget is %llu MiB; it goes for all",
                     (unsigned long long)(pol.view.dram_budget >> 20));
            pol.shared = pol.view.dram_budget;
        }
        return;
    }
    (void)snprintf(pol.reg_error, sizeof(pol.reg_error), "%s", registry_problem(e));
    log_warn("registry %s cannot be used (%s); this process places memory on its own", pol.reg_path,
             registry_problem(e));
}

/* The machine as the registry shows it, at most so old; returns our place in
 * it, or one beyond the last when our slot is lost. */
static unsigned read_machine_locked(uint64_t max_age_ns)
{
    uint64_t now = os_now_ns();
    if (pol.machine_ns && max_age_ns &&
        now - pol.machine_ns < HY_MAX(max_age_ns, pol.read_cost_ns * MACHINE_AGE_READS))
        return pol.self;
    registry_read(pol.reg, &pol.view);
    pol.machine_ns = os_now_ns();
    pol.read_cost_ns = pol.machine_ns - now;
    pol.machine.dram_budget = pol.view.dram_budget;
    pol.machine.n_apps = HY_MIN(pol.view.n, PLACE_MAX_APPS);
    pol.self = pol.machine.n_apps;
    for (unsigned i = 0; i < pol.machine.n_apps; i++) {
        const struct registry_entry *e = &pol.view.entry[i];
        pol.machine.app[i] = (struct place_app){.cls = e->told.cls,
                                                .dram_bytes = e->dram_bytes,
                                                .pm_bytes = e->told.pm_bytes,
                                                .wish_bytes = e->told.wish_bytes};
        if (e->is_self)
            pol.self = i;
    }
    return pol.self;
}

static void publish_locked(void)
{
    pol.told.cls = (enum hy_class)pol.cls;
    pol.told.pm_bytes = get(&pol.used[HY_PM]);
    pol.told.wish_bytes = get(&pol.wish);
    pol.told.asked_bytes = get(&pol.asked);
    registry_publish(pol.reg, &pol.told);
}

/* Algorithm 1 for `bytes` more DRAM. What others wish for is not free to us. The
 * claim that follows a yes has the last word. */
static bool may_claim_locked(uint64_t bytes)
{
    if (pol.policy != HY_POLICY_AUTO)
        return true;
    unsigned self = read_machine_locked(MACHINE_AGE_NS);
    if (self >= pol.machine.n_apps)
        return true;
    /* What we hold by now, not what was read a while ago. */
    pol.machine.app[self].dram_bytes = get(&pol.claimed);
    pol.machine.app[self].wish_bytes = get(&pol.wish);
    return placement_decide(&pol.machine, self, bytes).tier == HY_DRAM;
}

/* What was turned away since the last look becomes a wish, where Algorithm 1
 * has one; never more than what lies on PM for it. */
static void wish_locked(void)
{
    uint64_t unmet = __atomic_exchange_n(&pol.unmet, 0, __ATOMIC_RELAXED);
    unsigned self = read_machine_locked(MACHINE_AGE_NS);
    if (pol.policy != HY_POLICY_AUTO || !unmet || self >= pol.machine.n_apps)
        return;
    pol.machine.app[self].wish_bytes = get(&pol.wish);
    struct place_decision d = placement_decide(&pol.machine, self, unmet);
    if (d.tier == HY_DRAM || !d.wish_bytes)
        return;
    uint64_t most = get(&pol.used[HY_PM]) + unmet;
    put(&pol.wish, HY_MIN(get(&pol.wish) + d.wish_bytes, most));
    pol.wish_ns = os_now_ns();
    publish_locked();
}

/* Pages that would come up are wished for, however long they have been waiting. */
static void want_locked(unsigned self)
{
    uint64_t wanted = HY_MIN(
        get(&pol.wanted), pol.limit[HY_DRAM] - HY_MIN(get(&pol.used[HY_DRAM]), pol.limit[HY_DRAM]));
    if (pol.policy != HY_POLICY_AUTO || wanted <= get(&pol.wish) || self >= pol.machine.n_apps)
        return;
    pol.machine.app[self].wish_bytes = 0; /* ours: it is made anew */
    put(&pol.wish, HY_MAX(placement_wish(&pol.machine, self, wanted), get(&pol.wish)));
}

static bool claim_locked(uint64_t have, uint64_t need)
{
    uint64_t step = hy_align_up(need - have, pol.lease);
    if (!may_claim_locked(need - have))
        return false;
    if (registry_claim_dram(pol.reg, step) == 0) {
        put(&pol.claimed, have + step);
        return true;
    }
    if (registry_claim_dram(pol.reg, need - have) == 0) {
        put(&pol.claimed, need);
        return true;
    }
    pol.machine_ns = 0; /* what was read is out of date */
    return false;
}

/* Make the claim cover `total` bytes of DRAM; false if the others leave too little. */
static bool cover(uint64_t total)
{
    uint64_t need = total > pol.inherited ? total - pol.inherited : 0;
    if (HY_LIKELY(need <= get(&pol.claimed)))
        return true;
    pthread_mutex_lock(&lock);
    join_locked();
    uint64_t have = get(&pol.claimed);
    bool ok = pol.reg_state != REG_JOINED || need <= have;
    /* After a refusal, not at once again: a look at all slots costs something. */
    if (!ok && os_now_ns() - pol.refused_ns >= RETRY_NS) {
        ok = claim_locked(have, need);
        pol.refused_ns = ok ? 0 : os_now_ns();
        if (!ok)
            wish_locked();
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

static void give_back_locked(void)
{
    uint64_t used = get(&pol.used[HY_DRAM]), have = get(&pol.claimed);
    uint64_t need = used > pol.inherited ? used - pol.inherited : 0;
    if (pol.reg_state != REG_JOINED || have <= need)
        return;
    put(&pol.claimed, need);
    registry_return_dram(pol.reg, have - need);
}

/* --- what the heaps and mappings ask --------------------------------------------- */

static uint64_t room_of(enum hy_tier t)
{
    uint64_t kept = t == HY_DRAM ? get(&pol.kept) : 0;
    return pol.limit[t] - HY_MIN(kept, pol.limit[t]);
}

static void reopen(enum hy_tier t, uint64_t used)
{
    if (__atomic_load_n(&pol.closed[t], __ATOMIC_RELAXED) && used < room_of(t)) {
        __atomic_store_n(&pol.closed[t], false, __ATOMIC_RELAXED);
        heap_reopen(t);
    }
}

uint64_t policy_room(enum hy_tier t)
{
    uint64_t used = get(&pol.used[t]);
    return room_of(t) - HY_MIN(used, room_of(t));
}

void policy_keep_dram(uint64_t bytes)
{
    uint64_t before = __atomic_exchange_n(&pol.kept, bytes, __ATOMIC_RELAXED);
    if (bytes < before)
        reopen(HY_DRAM, get(&pol.used[HY_DRAM]));
}

uint64_t policy_dram_share(void)
{
    uint64_t share = pol.limit[HY_DRAM];
    pthread_mutex_lock(&lock);
    join_locked();
    if (pol.reg_state == REG_JOINED) {
        unsigned self = read_machine_locked(MACHINE_AGE_NS);
        uint64_t claimed = pol.inherited + get(&pol.claimed);
        uint64_t asked = HY_MIN(get(&pol.asked), claimed);
        share = HY_MIN(share, claimed - asked + placement_free(&pol.machine, self));
    }
    pthread_mutex_unlock(&lock);
    return share;
}

bool policy_charge(enum hy_tier t, size_t bytes, bool force)
{
    uint64_t now = __atomic_add_fetch(&pol.used[t], bytes, __ATOMIC_RELAXED);
    bool ok = now <= room_of(t);

    if (t == HY_DRAM && ok)
        ok = !yielding();
    if (t == HY_DRAM && ok && !cover(now)) {
        ok = pol.policy == HY_POLICY_DRAM; /* its own limit goes, not the others' wishes */
        __atomic_add_fetch(&pol.unmet, bytes, __ATOMIC_RELAXED);
    }
    if (!ok && force) {
        __atomic_add_fetch(&pol.forced_bytes, bytes, __ATOMIC_RELAXED);
        ok = true;
    }
    if (ok) {
        note_peak(t, now);
        return true;
    }
    __atomic_sub_fetch(&pol.used[t], bytes, __ATOMIC_RELAXED);
    __atomic_add_fetch(&pol.refused[t], 1, __ATOMIC_RELAXED);
    __atomic_store_n(&pol.closed[t], true, __ATOMIC_RELAXED);
    return false;
}

void policy_discharge(enum hy_tier t, size_t bytes)
{
    uint64_t used = get(&pol.used[t]);
    uint64_t less;
    do
        less = used > bytes ? used - bytes : 0;
    while (!__atomic_compare_exchange_n(&pol.used[t], &used, less, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    uint64_t claimed = get(&pol.claimed);
    if (t == HY_DRAM && claimed != ALONE && claimed > less + 4 * pol.lease) {
        pthread_mutex_lock(&lock);
        give_back_locked();
        pthread_mutex_unlock(&lock);
    }
    reopen(t, less);
}

void policy_account(enum hy_tier t, int64_t delta)
{
    if (delta > 0)
        (void)policy_charge(t, (size_t)delta, true);
    else
        policy_discharge(t, (size_t)-delta);
}

bool policy_set_dram_used(uint64_t bytes)
{
    put(&pol.used[HY_DRAM], bytes);
    note_peak(HY_DRAM, bytes);
    return bytes <= pol.limit[HY_DRAM] && !yielding() &&
           (cover(bytes) || pol.policy == HY_POLICY_DRAM);
}

void policy_set_class(enum hy_class cls)
{
    __atomic_store_n(&pol.cls, (uint8_t)cls, __ATOMIC_RELAXED);
}

uint64_t policy_used(void)
{
    return get(&pol.used[HY_DRAM]) + get(&pol.used[HY_PM]);
}

/* --- once a second, by the control thread ------------------------------------------ */

static void set_favour(enum hy_tier t)
{
    if (t != heap_favour()) {
        log_info("new memory goes to %s first", hy_tier_name(t));
        heap_set_favour(t);
    }
}

void policy_want(uint64_t bytes)
{
    put(&pol.wanted, bytes);
}

void policy_tick(void)
{
    bool joined;
    pthread_mutex_lock(&lock);
    join_locked(); /* also without DRAM: the others shall see us */
    joined = pol.reg_state == REG_JOINED;
    if (joined) {
        unsigned self = read_machine_locked(0);
        pol.told.threads = runtime_program_threads();
        if (!registry_joined(pol.reg)) /* our slot was lost: take a new one */
            pol.reg_state = REG_NOT_YET;
        put(&pol.asked, placement_asked_of(&pol.machine, self));
        if (os_now_ns() - pol.wish_ns > WISH_HOLD_NS)
            put(&pol.wish, 0);
        wish_locked();
        want_locked(self);
        give_back_locked();
        publish_locked();
    }
    pthread_mutex_unlock(&lock);

    if (yielding()) {
        set_favour(HY_PM);
        heap_trim(HY_DRAM);
    } else {
        set_favour(pol.policy == HY_POLICY_PM ? HY_PM : HY_DRAM);
        if (__atomic_exchange_n(&pol.closed[HY_DRAM], false, __ATOMIC_RELAXED))
            heap_reopen(HY_DRAM); /* others may have left */
    }
}

void policy_tell(const struct registry_told *told)
{
    pthread_mutex_lock(&lock);
    uint32_t threads = pol.told.threads;
    pol.told = *told;
    pol.told.threads = threads;
    pthread_mutex_unlock(&lock);
}

static void cpus_of_others_locked(struct cpus_of_others *ret)
{
    for (unsigned i = 0; i < pol.view.n; i++) {
        const struct registry_entry *e = &pol.view.entry[i];
        uint64_t any = 0;
        if (e->is_self || e->pid == os_pid())
            continue;
        for (int k = 0; k < REGISTRY_CPU_WORDS; k++) {
            any |= e->cpus[k];
            ret->all.word[k] |= e->cpus[k];
            /* Of two that chose the same, the younger number gives way: never both. */
            ret->elders.word[k] |= e->pid < os_pid() ? e->cpus[k] : 0;
        }
        ret->confined += any != 0;
    }
}

void policy_exchange_cpus(const struct hy_cpus *mine, struct cpus_of_others *ret)
{
    memset(ret, 0, sizeof(*ret));
    pthread_mutex_lock(&lock);
    if (cpus_count(mine) > 0)
        join_locked();
    if (pol.reg_state == REG_JOINED) {
        registry_publish_cpus(pol.reg, mine->word);
        (void)read_machine_locked(MACHINE_AGE_NS);
        cpus_of_others_locked(ret);
    }
    pthread_mutex_unlock(&lock);
}

static void registry_path(char *buf, size_t cap)
{
    const char *spec = hy_config.set.registry;
    if (strcmp(spec, "auto") == 0)
        registry_default_path(buf, cap);
    else if (strcmp(spec, "none") != 0)
        (void)snprintf(buf, cap, "%s", spec);
}

bool policy_peek_cpus(struct cpus_of_others *ret)
{
    char path[HY_PATH_MAX] = "";
    struct registry *r;

    memset(ret, 0, sizeof(*ret));
    registry_path(path, sizeof(path));
    if (!path[0] || !os_file_exists(path))
        return false;
    pthread_mutex_lock(&lock);
    if (pol.reg_state == REG_JOINED) {
        (void)read_machine_locked(MACHINE_AGE_NS);
        cpus_of_others_locked(ret);
    } else if (registry_open_readonly(path, &r) == 0) {
        registry_read(r, &pol.view);
        cpus_of_others_locked(ret);
        registry_close(r);
    }
    pthread_mutex_unlock(&lock);
    return ret->confined > 0;
}

/* --- life cycle ------------------------------------------------------------------------ */

void policy_init(const struct hy_settings *s, const struct runtime_machine *m)
{
    pol.policy = s->policy;
    pol.cls = (uint8_t)settings_class();
    pol.limit[HY_DRAM] = HY_MIN(hy_amount_bytes(s->dram, m->dram_bytes), m->dram_bytes);
    pol.limit[HY_PM] = m->pm_bytes;
    pol.shared = hy_amount_bytes(s->dram_shared, m->dram_bytes);
    pol.lease = HY_MIN(HY_MAX(pol.shared / 64, (uint64_t)HEAP_GRANULE), 16 * HY_MIB);
    pol.lease &= ~(uint64_t)(HEAP_GRANULE - 1);
    pol.lease = 1ull << (63 - __builtin_clzll(pol.lease)); /* hy_align_up wants a power of two */
    registry_path(pol.reg_path, sizeof(pol.reg_path));
}

void policy_get(struct policy_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->policy = pol.policy;
    ret->cls = (enum hy_class)pol.cls;
    ret->favour = heap_favour();
    for (int t = 0; t < HY_TIERS; t++) {
        ret->used[t] = get(&pol.used[t]);
        ret->limit[t] = pol.limit[t];
        ret->peak[t] = get(&pol.peak[t]);
        ret->refused[t] = get(&pol.refused[t]);
    }
    ret->forced_bytes = get(&pol.forced_bytes);
    ret->wish = get(&pol.wish);
    ret->asked = get(&pol.asked);
    ret->claimed = get(&pol.claimed);
    ret->dram_shared = pol.shared;
    ret->in_registry = pol.reg_state == REG_JOINED;
    memcpy(ret->registry, pol.reg_path, sizeof(ret->registry));
    memcpy(ret->registry_error, pol.reg_error, sizeof(ret->registry_error));
}

void policy_leave(void)
{
    pthread_mutex_lock(&lock);
    if (pol.reg_state == REG_JOINED)
        registry_leave(pol.reg);
    pol.reg_state = REG_NONE;
    put(&pol.claimed, ALONE);
    pthread_mutex_unlock(&lock);
}

void policy_prefork(void)
{
    pthread_mutex_lock(&lock);
}

void policy_postfork(bool child)
{
    if (child) {
        /* The child shares these pages until one of them writes: they count
         * once, with the parent. */
        pol.inherited = get(&pol.used[HY_DRAM]);
        put(&pol.claimed, 0);
        put(&pol.wish, 0);
        put(&pol.wanted, 0);
        put(&pol.asked, 0);
        pol.told = (struct registry_told){.threads = 1};
        if (pol.reg)
            registry_after_fork_child(pol.reg);
        if (pol.reg_state == REG_JOINED)
            pol.reg_state = REG_NOT_YET;
    }
    pthread_mutex_unlock(&lock);
}
