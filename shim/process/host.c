/* SPDX-License-Identifier: BSD-2-Clause
 * What the heaps ask of the rest of the library (struct heap_host). */
#include "core/control.h"
#include "core/pause.h"
#include "core/state.h"
#include "heap/heap.h"
#include "heap/supply.h"
#include "migrator.h"
#include "place/policy.h"
#include "process/process.h"

static void *take(enum hy_tier t, size_t bytes)
{
    void *p = supply_take(t, bytes);
    if (t == HY_PM && !p && supply_is_short(bytes)) /* and not for want of room in a file system */
        control_note_short();
    else if (t == HY_PM && supply_runs_low())
        control_wake();
    return p;
}

/* What was there is no more; e: it failed. */
static int discarded(int e, enum hy_tier t, void *base, size_t bytes)
{
    if (e == 0 && bytes && !runtime_is_sandboxed())
        migrate_discarded(base, bytes, t);
    return e;
}

static int purge(enum hy_tier t, void *base, size_t bytes)
{
    return discarded(supply_purge(t, base, bytes), t, base, bytes);
}

static int release(enum hy_tier t, void *base, size_t bytes)
{
    return discarded(supply_release(t, base, bytes), t, base, bytes);
}

static int renew(enum hy_tier t, void *base, size_t bytes, bool in_use)
{
    return discarded(supply_renew(t, base, bytes, in_use), t, base, bytes);
}

/* Not of files: a hole in the middle of a block would have to be filled before the next store. */
static bool trim(enum hy_tier t, void *base, size_t bytes)
{
    return (t == HY_DRAM || hy_machine.backend != HY_PM_FILE) && purge(t, base, bytes) == 0;
}

const struct heap_host heap_host = {
    .take = take,
    .purge = purge,
    .release = release,
    .renew = renew,
    .trim = trim,
    .restore = supply_restore,
    .await = control_await,
    .charge = policy_charge,
    .discharge = policy_discharge,
    .room = policy_room,
    .room_now = policy_room_now,
    .split = migrate_split,
    .join = migrate_join,
    .lies_far = migrate_lies_far,
};
