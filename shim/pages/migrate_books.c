/* SPDX-License-Identifier: BSD-2-Clause
 * The heaps and mappings charge memory to the tier that it belongs to. Pages that lie on the
 * other one make a difference, which the sampler's histories know as a whole: it is kept
 * charged here, and follows every change, of moves and of memory that comes and goes. */
#include "pages/migrate_books.h"

#include "core/pause.h"
#include "core/state.h"
#include "heap/supply.h"
#include "migrator.h"
#include "pages/rules/stripes.h"
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

/* Large blocks of DRAM of which a part lies on PM, and their stripes in all: so few that the
 * process is far from the mappings that it may have. Under lock. */
#define PARTED         256u
#define PARTED_STRIPES 2048u
static struct stripes parted[PARTED];
static unsigned n_parted, n_stripes;

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

static struct stripes *find_parted(uintptr_t base)
{
    for (unsigned i = 0; i < PARTED; i++)
        if (parted[i].base == base)
            return &parted[i];
    return NULL;
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

/* So many stripes the next block may have: each that can still come needs one. */
static unsigned most_stripes(void)
{
    return n_parted < PARTED ? PARTED_STRIPES - n_stripes - (PARTED - 1 - n_parted) : 0;
}

/* All of its parts on PM; false: one cannot be lent there, nor those behind it. */
static bool lend_parts(const struct stripes *s, enum hy_tier to)
{
    uintptr_t at;
    size_t n;
    for (unsigned k = 0; stripes_next(s, &k, &at, &n);)
        if (!lend((void *)at, n, to) && to == HY_PM)
            return false;
    return true;
}

static void rehome_parts(const struct stripes *s, uintptr_t from, uintptr_t to, enum hy_tier home)
{
    uintptr_t at;
    size_t n;
    for (unsigned k = 0; stripes_next(s, &k, &at, &n);) {
        uintptr_t begin = HY_MAX(at, from), end = HY_MIN(at + n, to);
        if (begin < end)
            sampler_rehome((void *)begin, end - begin, home);
    }
}

/* By memory policy, so not where PM is a file. No program calls mremap for blocks of malloc's,
 * which refuses a mapping of two policies. */
bool migrate_split(void *block, size_t size, size_t away, const uint8_t *level)
{
    const struct runtime_machine *m = &hy_machine;
    struct stripes s = {(uintptr_t)block, size, away, 1, level};
    if ((m->backend != HY_PM_NODE && m->backend != HY_PM_EMULATED) || runtime_is_sandboxed() ||
        !policy_charge(HY_PM, away, false))
        return false;
    hy_lock_take(&lock);
    struct stripes *note = find_parted(0);
    if (level)
        s.n = stripes_count(&s, most_stripes());
    bool ok = note;
    if (ok && !lend_parts(&s, HY_PM)) {
        (void)lend_parts(&s, HY_DRAM);
        ok = false;
    }
    if (ok) {
        *note = s;
        n_parted++;
        n_stripes += s.n;
        rehome_parts(&s, s.base, s.base + size, HY_PM);
        settle(0);
    }
    hy_lock_release(&lock);
    if (!ok)
        policy_discharge(HY_PM, away);
    return ok;
}

void migrate_join(void *block)
{
    uintptr_t at;
    size_t n, away = 0;
    hy_lock_take(&lock);
    struct stripes *s = find_parted((uintptr_t)block);
    if (s) {
        away = s->away;
        for (unsigned k = 0; stripes_next(s, &k, &at, &n);)
            (void)supply_purge(HY_DRAM, (void *)at, n);
        (void)lend_parts(s, HY_DRAM);
        rehome_parts(s, s->base, s->base + s->size, HY_DRAM);
        n_parted--;
        n_stripes -= s->n;
        *s = (struct stripes){0};
        settle(0);
    }
    hy_lock_release(&lock);
    policy_discharge(HY_PM, away);
}

static void watch_chunk(char *base, size_t bytes, enum hy_tier t)
{
    hy_lock_take(&lock);
    (void)sampler_add(base, bytes, t, true);
    for (unsigned i = 0; i < PARTED; i++)
        rehome_parts(&parted[i], (uintptr_t)base, (uintptr_t)base + bytes, HY_PM);
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
