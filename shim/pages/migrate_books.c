/* SPDX-License-Identifier: BSD-2-Clause
 * The heaps and mappings charge memory to the tier that it belongs to. Pages that lie on the
 * other one make a difference, which the sampler's histories know as a whole: it is kept
 * charged here, and follows every change, of moves and of memory that comes and goes. */
#include "pages/migrate_books.h"

#include <pthread.h>

#include "heap/supply.h"
#include "migrator.h"
#include "pages/sampler.h"
#include "place/maps.h"
#include "place/policy.h"
#include "sys/emulator.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t settled; /* pages, under lock */
static bool active;
static size_t watched[HY_TIERS]; /* chunks of the supply */

void books_open(bool open)
{
    __atomic_store_n(&active, open, __ATOMIC_RELEASE);
}

static bool is_active(void)
{
    return HY_UNLIKELY(__atomic_load_n(&active, __ATOMIC_ACQUIRE));
}

void books_settle(uint64_t paid)
{
    pthread_mutex_lock(&lock);
    int64_t now = sampler_extra_dram();
    int64_t more = (now - settled) * (int64_t)HY_PAGE;
    settled = now;
    if (more != (int64_t)paid)
        policy_account(HY_DRAM, more - (int64_t)paid);
    if (more != 0)
        policy_account(HY_PM, -more);
    pthread_mutex_unlock(&lock);
}

void migrate_discarded(void *base, size_t bytes, enum hy_tier home)
{
    if (!is_active())
        return;
    emulator_set_tier(base, bytes, home); /* elsewhere the kernel does it by itself */
    sampler_discard(base, bytes);
    books_settle(0);
}

void migrate_unmapped(void *base, size_t bytes)
{
    if (!is_active())
        return;
    sampler_remove(base, bytes);
    books_settle(0);
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
            (void)sampler_add(base, bytes, (enum hy_tier)t, true);
    if (maps_any())
        maps_tell_new(watch_mapping);
}

void books_prefork(void)
{
    pthread_mutex_lock(&lock);
    sampler_prefork();
}

void books_postfork(void)
{
    sampler_postfork();
    pthread_mutex_unlock(&lock);
}
