/* SPDX-License-Identifier: BSD-2-Clause
 * fork: every lock of ours is taken in the order in which they nest, so that
 * the child finds everything at rest. */
#include <pthread.h>
#include <stdbool.h>

#include "base/guard.h"
#include "runtime/classify.h"
#include "runtime/internal.h"
#include "runtime/migrate.h"
#include "runtime/planned.h"
#include "runtime/threadcap.h"
#include "runtime/trace.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "service/sites.h"
#include "service/supply.h"
#include "sys/log.h"

/* Our locks, taken by this thread for a fork under way. */
static __thread bool locked __attribute__((tls_model("initial-exec")));

/* Installed once memkind is there, so that it runs before the handlers of
 * memkind's jemalloc (they run last registered first): running code takes the
 * heap's locks before jemalloc's. Handlers that the program registered earlier
 * run after this one and may allocate: the guard sends them to the next
 * allocator, and the heaps put off what they free. */
static void take_locks(void)
{
    sites_prefork();
    maps_prefork();
    heap_prefork();
    migrate_prefork();
    policy_prefork();
    supply_prefork();
    hy_guard_enter();
    locked = true;
}

static void release_locks(bool child)
{
    if (!locked)
        return;
    locked = false;
    hy_guard_leave();
    supply_postfork();
    policy_postfork(child);
    migrate_postfork(child);
    heap_postfork();
    maps_postfork();
    sites_postfork();
}

static void locks_in_parent(void)
{
    release_locks(false);
}

static void locks_in_child(void)
{
    release_locks(true);
}

/* A fork that began before the handlers above were there, and finds the heaps
 * serving at its end. jemalloc's locks may be this thread's already, so the heap's
 * are not waited for without end: who holds them may be waiting for jemalloc's. */
static __thread bool missed __attribute__((tls_model("initial-exec")));

static bool try_locks(void)
{
    sites_prefork();
    maps_prefork();
    if (!heap_try_prefork()) {
        maps_postfork();
        sites_postfork();
        return false;
    }
    migrate_prefork();
    policy_prefork();
    supply_prefork();
    hy_guard_enter();
    locked = true;
    return true;
}

static void fork_begins(void)
{
    control_prefork();
    missed = false;
    if (runtime_state() == HY_STEERING && !locked)
        missed = try_locks();
}

static void parent_goes_on(void)
{
    control_postfork_parent();
    if (missed)
        release_locks(false);
    missed = false;
}

static void child_begins(void)
{
    if (missed)
        release_locks(true);
    else if (runtime_state() == HY_ENGAGING)
        runtime_go_passive("forked while memkind was being loaded");
    else if (runtime_state() == HY_STEERING && !locked)
        runtime_freeze();
    missed = false;
    control_postfork_child();
    threadcap_child();
    planned_child();
    classify_child();
    trace_child();
    log_drop_stderr();
}

void fork_install(void)
{
    hy_guard_enter(); /* pthread_atfork may allocate */
    (void)pthread_atfork(fork_begins, parent_goes_on, child_begins);
    hy_guard_leave();
}

int fork_install_locks(void)
{
    return -pthread_atfork(take_locks, locks_in_parent, locks_in_child);
}
