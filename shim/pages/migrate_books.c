/* SPDX-License-Identifier: BSD-2-Clause
 * The heaps and mappings charge memory to the tier that it belongs to. Pages that lie on the
 * other one make a difference, which the sampler's histories know as a whole: it is kept
 * charged here, and follows every change, of moves and of memory that comes and goes. */
#include "pages/migrate_books.h"

#include "core/pause.h"
#include "core/state.h"
#include "heap/supply.h"
#include "migrator.h"
#include "pages/sampler.h"
#include "place/maps.h"
#include "place/policy.h"
#include "sys/emulator.h"
#include "sys/filter.h"
#include "sys/lock.h"

static struct hy_lock lock;
static int64_t settled; /* pages, under lock */
static bool active;
static size_t watched[HY_TIERS]; /* chunks of the supply */

/* Ends of large blocks of DRAM that lie on PM: as many as cost the process no more mappings than
 * libraries do. Under lock. */
#define ENDS 256u
static struct {
    void *base;
    size_t bytes;
} end_of[ENDS];

void books_open(bool open)
{
    __atomic_store_n(&active, open, __ATOMIC_RELEASE);
}

static bool is_active(void)
{
    return HY_UNLIKELY(__atomic_load_n(&active, __ATOMIC_ACQUIRE));
}

static void settle(uint64_t paid)
{
    int64_t now = sampler_extra_dram();
    int64_t more = (now - settled) * (int64_t)HY_PAGE;
    settled = now;
    if (more != (int64_t)paid)
        policy_account(HY_DRAM, more - (int64_t)paid);
    if (more != 0)
        policy_account(HY_PM, -more);
}

void books_settle(uint64_t paid)
{
    hy_lock_take(&lock);
    settle(paid);
    hy_lock_release(&lock);
}

void migrate_discarded(void *base, size_t bytes, enum hy_tier home)
{
    if (!is_active())
        return;
    emulator_set_tier(base, bytes, home); /* elsewhere the kernel does it by itself */
    sampler_discard(base, bytes);
    books_settle(0);
}

bool migrate_lies_far(const void *base, size_t *bytes)
{
    return is_active() && sampler_far(base, bytes);
}

void migrate_unmapped(void *base, size_t bytes)
{
    if (!is_active())
        return;
    sampler_remove(base, bytes);
    books_settle(0);
}

static bool note_end(const void *old, void *base, size_t bytes)
{
    for (unsigned i = 0; i < ENDS; i++)
        if (end_of[i].base == old) {
            end_of[i].base = base;
            end_of[i].bytes = bytes;
            return true;
        }
    return false;
}

/* Where the pages of a range come from next. Emulated memory needs no call; where a filter kills
 * for mbind the range stays as it is, which costs no more than the right memory. */
static bool lend(void *base, size_t bytes, enum hy_tier to)
{
    bool nodes = hy_machine.backend == HY_PM_NODE;
    if (nodes && !os_calls_begin())
        return false;
    bool ok = supply_lend(base, bytes, to, nodes, to == HY_PM ? hy_machine.pm_mask : 0);
    if (nodes)
        os_calls_end();
    return ok;
}

/* By memory policy, so not where PM is a file. No program calls mremap for blocks of malloc's,
 * which refuses a mapping of two policies. */
bool migrate_split(void *base, size_t bytes)
{
    const struct runtime_machine *m = &hy_machine;
    if ((m->backend != HY_PM_NODE && m->backend != HY_PM_EMULATED) || runtime_is_sandboxed() ||
        !policy_charge(HY_PM, bytes, false))
        return false;
    hy_lock_take(&lock);
    bool ok = note_end(NULL, base, bytes);
    if (ok && !lend(base, bytes, HY_PM)) {
        (void)lend(base, bytes, HY_DRAM);
        ok = !note_end(base, NULL, 0);
    }
    if (ok) {
        sampler_rehome(base, bytes, HY_PM);
        settle(0);
    }
    hy_lock_release(&lock);
    if (!ok)
        policy_discharge(HY_PM, bytes);
    return ok;
}

void migrate_join(void *base, size_t bytes)
{
    hy_lock_take(&lock);
    (void)supply_purge(HY_DRAM, base, bytes);
    (void)lend(base, bytes, HY_DRAM);
    (void)note_end(base, NULL, 0);
    sampler_rehome(base, bytes, HY_DRAM);
    settle(0);
    hy_lock_release(&lock);
    policy_discharge(HY_PM, bytes);
}

static void watch_chunk(char *base, size_t bytes, enum hy_tier t)
{
    hy_lock_take(&lock);
    (void)sampler_add(base, bytes, t, true);
    for (unsigned i = 0; i < ENDS; i++) {
        char *from = HY_MAX((char *)end_of[i].base, base);
        char *to = HY_MIN((char *)end_of[i].base + end_of[i].bytes, base + bytes);
        if (from < to)
            sampler_rehome(from, (size_t)(to - from), HY_PM);
    }
    settle(0);
    hy_lock_release(&lock);
}

static void watch_mapping(void *base, size_t bytes, enum hy_tier t)
{
    (void)sampler_add(base, bytes, t, false);
}

void books_watch_new(void)
{
    void *base;
    size_t bytes;
    for (int t = 0; t < HY_TIERS; t++)
        for (; supply_chunk((enum hy_tier)t, watched[t], &base, &bytes); watched[t]++)
            watch_chunk(base, bytes, (enum hy_tier)t);
    if (maps_any())
        maps_tell_new(watch_mapping);
}

void books_prefork(void)
{
    hy_lock_prefork(&lock);
    sampler_prefork();
}

void books_postfork(void)
{
    sampler_postfork();
    hy_lock_postfork(&lock);
}
