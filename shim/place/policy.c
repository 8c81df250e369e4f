/* SPDX-License-Identifier: BSD-2-Clause
 * Algorithm 1 at work (papers/DIGEST.md, 004): every run of pages asks here
 * whether its tier may hold it. What is charged stays below this process's
 * limit and, through the registry, below the budget that all share. */
#include <stdio.h>
#include <string.h>

#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "heap/heap.h"
#include "place/company.h"
#include "place/floor.h"
#include "place/policy.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "sys/os.h"

/* What a start writes, its first bytes, in one page. */
struct policy_state hy_pol __attribute__((aligned(256)));

static void note_peak(enum hy_tier t, uint64_t now)
{
    uint64_t peak = load(&hy_pol.peak[t]);
    while (now > peak && !__atomic_compare_exchange_n(&hy_pol.peak[t], &peak, now, true,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static bool yielding(void)
{
    return hy_pol.policy == HY_POLICY_AUTO && hy_pol.cls == HY_CLASS_CPU && load(&hy_pol.asked) > 0;
}

/* --- what the heaps and mappings ask --------------------------------------------- */

static uint64_t room_of(enum hy_tier t)
{
    /* The calls by which files grow are not an allocator's. */
    if (t == HY_PM && runtime_is_sandboxed() && hy_machine.backend == HY_PM_FILE)
        return 0;
    uint64_t kept = t == HY_DRAM ? load(&hy_pol.kept) : 0;
    return hy_pol.limit[t] - HY_MIN(kept, hy_pol.limit[t]);
}

static void reopen(enum hy_tier t, uint64_t used)
{
    if (__atomic_load_n(&hy_pol.closed[t], __ATOMIC_RELAXED) && used < room_of(t)) {
        __atomic_store_n(&hy_pol.closed[t], false, __ATOMIC_RELAXED);
        heap_reopen(t);
    }
}

uint64_t policy_room(enum hy_tier t)
{
    uint64_t used = load(&hy_pol.used[t]);
    return room_of(t) - HY_MIN(used, room_of(t));
}

uint64_t policy_room_now(enum hy_tier t)
{
    uint64_t room = policy_room(t), claimed = load(&hy_pol.claimed), used = load(&hy_pol.used[t]);
    if (t == HY_PM || claimed == ALONE || floor_on())
        return room;
    uint64_t ours = hy_pol.inherited + claimed;
    return HY_MIN(room, ours - HY_MIN(used, ours));
}

void policy_keep_dram(uint64_t bytes)
{
    uint64_t before = __atomic_exchange_n(&hy_pol.kept, bytes, __ATOMIC_RELAXED);
    if (bytes < before)
        reopen(HY_DRAM, load(&hy_pol.used[HY_DRAM]));
}

void policy_turned_away(enum hy_tier t)
{
    __atomic_add_fetch(&hy_pol.refused[t], 1, __ATOMIC_RELAXED);
}

bool policy_charge(enum hy_tier t, size_t bytes, bool force)
{
    uint64_t now = __atomic_add_fetch(&hy_pol.used[t], bytes, __ATOMIC_RELAXED);
    bool ok = now <= room_of(t);

    if (t == HY_DRAM && (ok || floor_on())) {
        ok = !yielding();
        if (ok && !share_cover(now)) {
            /* With policy dram its own limit goes, not the others' wishes. */
            ok = hy_pol.policy == HY_POLICY_DRAM || floor_on();
            __atomic_add_fetch(&hy_pol.unmet, bytes, __ATOMIC_RELAXED);
        }
    }
    if (!ok && force) {
        __atomic_add_fetch(&hy_pol.forced_bytes, bytes, __ATOMIC_RELAXED);
        ok = true;
    }
    if (ok) {
        (void)policy_short_of(); /* nobody waits for it */
        note_peak(t, now);
        return true;
    }
    __atomic_sub_fetch(&hy_pol.used[t], bytes, __ATOMIC_RELAXED);
    if (!share_short()) /* else the answer will tell */
        policy_turned_away(t);
    __atomic_store_n(&hy_pol.closed[t], true, __ATOMIC_RELAXED);
    return false;
}

void policy_discharge(enum hy_tier t, size_t bytes)
{
    uint64_t used = load(&hy_pol.used[t]);
    uint64_t less;
    do
        less = used > bytes ? used - bytes : 0;
    while (!__atomic_compare_exchange_n(&hy_pol.used[t], &used, less, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    uint64_t claimed = load(&hy_pol.claimed);
    if (t == HY_DRAM && claimed != ALONE && claimed > less + 4 * hy_pol.lease)
        share_spare();
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
    store(&hy_pol.used[HY_DRAM], bytes);
    note_peak(HY_DRAM, bytes);
    if (bytes > hy_pol.limit[HY_DRAM] || yielding())
        return false;
    return share_cover(bytes) || hy_pol.policy == HY_POLICY_DRAM ||
           (control_await(HY_DRAM, bytes) && share_cover(bytes));
}

void policy_set_class(enum hy_class cls)
{
    __atomic_store_n(&hy_pol.cls, (uint8_t)cls, __ATOMIC_RELAXED);
}

uint64_t policy_dram_used(void)
{
    return load(&hy_pol.used[HY_DRAM]);
}

uint64_t policy_used(void)
{
    return load(&hy_pol.used[HY_DRAM]) + load(&hy_pol.used[HY_PM]);
}

uint64_t policy_grown(void)
{
    uint64_t used = policy_used();
    return used > hy_pol.born_with ? used - hy_pol.born_with : 0;
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
    store(&hy_pol.wanted, bytes);
}

void policy_tick(void)
{
    share_tick();
    if (yielding()) {
        set_favour(HY_PM);
        heap_trim(HY_DRAM);
    } else {
        set_favour(hy_pol.policy == HY_POLICY_PM ? HY_PM : HY_DRAM);
        if (__atomic_exchange_n(&hy_pol.closed[HY_DRAM], false, __ATOMIC_RELAXED))
            heap_reopen(HY_DRAM); /* others may have left */
    }
}

/* --- life cycle ------------------------------------------------------------------------ */

void share_path(char *buf, size_t cap)
{
    const char *spec = hy_config.set.registry;
    if (strcmp(spec, "auto") == 0)
        registry_default_path(buf, cap);
    else if (strcmp(spec, "none") != 0)
        (void)snprintf(buf, cap, "%s", spec);
}

/* Not by an initializer: that would put all of it, 68 KiB, among the data that a start touches. */
void policy_alone(void)
{
    hy_pol.limit[HY_DRAM] = UINT64_MAX / 4;
    store(&hy_pol.claimed, ALONE);
}

void policy_init(const struct hy_settings *s, const struct runtime_machine *m)
{
    hy_pol.policy = s->policy;
    hy_pol.cls = (uint8_t)settings_class();
    hy_pol.limit[HY_DRAM] = HY_MIN(hy_amount_bytes(s->dram, m->dram_bytes), m->dram_bytes);
    hy_pol.limit[HY_PM] = m->pm_bytes;
    hy_pol.shared = hy_amount_bytes(s->dram_shared, m->dram_bytes);
    hy_pol.limit[HY_DRAM] = HY_MIN(hy_pol.limit[HY_DRAM], hy_pol.shared);
    floor_init(s, m, hy_pol.limit[HY_DRAM], hy_pol.shared);
    heap_bound_caches(hy_pol.limit[HY_DRAM]);
    hy_pol.lease = HY_MIN(HY_MAX(hy_pol.shared / 64, (uint64_t)HEAP_CHUNK), 16 * HY_MIB);
    hy_pol.lease &= ~(uint64_t)(HEAP_CHUNK - 1);
    hy_pol.lease =
        1ull << (63 - __builtin_clzll(hy_pol.lease)); /* hy_align_up wants a power of two */
    share_path(hy_pol.reg_path, sizeof(hy_pol.reg_path));
}

void policy_get(struct policy_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->policy = hy_pol.policy;
    ret->cls = (enum hy_class)hy_pol.cls;
    ret->favour = heap_favour();
    for (int t = 0; t < HY_TIERS; t++) {
        ret->used[t] = load(&hy_pol.used[t]);
        ret->limit[t] = hy_pol.limit[t];
        ret->peak[t] = load(&hy_pol.peak[t]);
        ret->refused[t] = load(&hy_pol.refused[t]);
    }
    ret->forced_bytes = load(&hy_pol.forced_bytes);
    ret->wish = load(&hy_pol.wish);
    ret->asked = load(&hy_pol.asked);
    ret->claimed = load(&hy_pol.claimed);
    ret->dram_shared = hy_pol.shared;
    ret->in_registry = hy_pol.reg_state == REG_JOINED;
    memcpy(ret->registry, hy_pol.reg_path, sizeof(ret->registry));
    memcpy(ret->registry_error, hy_pol.reg_error, sizeof(ret->registry_error));
}
