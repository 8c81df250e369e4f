/* SPDX-License-Identifier: BSD-2-Clause
 * fork: every lock of ours is taken in the order in which they nest, so that
 * the child finds everything at rest. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/guard.h"
#include "classifier.h"
#include "core/pause.h"
#include "heap/heap.h"
#include "heap/spare.h"
#include "heap/supply.h"
#include "llc/share.h"
#include "migrator.h"
#include "pages/migrate_books.h"
#include "place/maps.h"
#include "place/planned.h"
#include "place/policy.h"
#include "place/sites.h"
#include "process/process.h"
#include "record/record.h"
#include "report/trace.h"
#include "sys/lock.h"
#include "sys/log.h"
#include "sys/os.h"
#include "threadcap.h"

#define GATE_TRIES 200
#define GATE_NS    1000000ull

/* Locks of ours, taken in the order in which they nest. Handlers that the program registered
 * earlier run after this one and may allocate: as this thread holds locks, the next allocator
 * serves them, and the heaps put off what they free. In a process with one thread nobody else
 * can be holding any, and the thread itself, which a handler of a signal may have interrupted,
 * must not wait for its own. */
static __thread bool locked __attribute__((tls_model("initial-exec")));
/* A handler of a signal forks in the middle of work of ours. The locks of what watches pages do not
 * know their owner: they are left alone, and the child watches none. */
static __thread bool in_handler __attribute__((tls_model("initial-exec")));
/* Forks of this thread under way: a handler of a signal may fork in the middle of one. */
static __thread int forking __attribute__((tls_model("initial-exec")));

/* The gate of memkind, for this fork: by its own handler, or late, by a fork that began before
 * that was there. Such a fork may hold memkind's locks already, so it does not wait without end;
 * and its child does without memkind, which was not told of the fork: it knows threads that the
 * child does not have. */
static __thread enum { OPEN, BY_HANDLER, LATE } gated __attribute__((tls_model("initial-exec")));

static void take_gate_late(void)
{
    for (int i = 0; i < GATE_TRIES && gated == OPEN && supply_loaded(); i++) {
        if (supply_gate_try())
            gated = LATE;
        else
            os_sleep_ns(GATE_NS);
    }
}

static void open_gate(void)
{
    gated = OPEN;
    supply_gate_release();
}

static void fork_begins(void)
{
    if (forking++ > 0)
        return;
    in_handler = hy_locks_depth > (gated == BY_HANDLER ? 1 : 0);
    control_prefork();
    take_gate_late();
    locked = !os_single_threaded();
    if (locked) {
        sites_prefork();
        maps_prefork();
        heap_prefork();
        if (!in_handler)
            migrate_prefork();
        policy_prefork();
    }
    supply_prefork();
}

/* Has anything but the heap been at work? Most processes that fork are shells, in which nothing was
 * placed: to put the other rooms in order would cost each child some thirty page faults. */
static bool has_placed(void)
{
    return runtime_state() != HY_SERVING || control_has_begun() || threadcap_active() ||
           record_wanted() || trace_wanted();
}

static void fork_ends(bool child)
{
    if (--forking > 0)
        return;
    supply_postfork(child);
    if (child) {
        supply_child();
        if (supply_loaded() && gated != BY_HANDLER)
            supply_abandon();
        policy_child(has_placed());
    }
    if (locked) {
        policy_postfork();
        if (!in_handler)
            migrate_postfork(child);
        else if (child)
            books_open(false);
        heap_postfork(child);
        maps_postfork();
        sites_postfork();
    }
    if (gated == LATE) /* handlers that came during a fork do not run after it */
        open_gate();
}

static void parent_goes_on(void)
{
    fork_ends(false);
    if (forking == 0)
        control_postfork_parent();
}

static void child_begins(void)
{
    if (control_loading())
        supply_abandon();
    fork_ends(true);
    control_postfork_child();
    if (!runtime_is_sandboxed())
        os_note_main();
    threadcap_child(has_placed());
    if (has_placed()) {
        await_child();
        llc_child();
        planned_child();
        classify_child();
        record_child();
        trace_child();
    }
    log_drop_stderr();
}

static bool installed;

void fork_install(void)
{
    pause_own_process();
    hy_guard_enter(); /* pthread_atfork may allocate */
    (void)pthread_atfork(fork_begins, parent_goes_on, child_begins);
    hy_guard_leave();
    installed = true;
}

/* memkind's handlers do not run, so its child never asks it again (LATE). */
bool fork_unhandled_begins(void)
{
    if (installed)
        fork_begins();
    return installed;
}

void fork_unhandled_ends(bool child)
{
    if (child)
        child_begins();
    else
        parent_goes_on();
}

static bool limits_memory(int resource, const void *limit)
{
    return (resource == RLIMIT_AS || resource == RLIMIT_DATA) && limit && os_can_read(limit) &&
           ((const struct rlimit *)limit)->rlim_cur != RLIM_INFINITY;
}

bool fork_limit_begins(pid_t pid, int resource, const void *limit)
{
    if (!installed || !supply_has_files() || !limits_memory(resource, limit) ||
        (pid && pid != os_pid()) || !pause_memory_is_ours())
        return false;
    fork_begins();
    return true;
}

void fork_limit_ends(void)
{
    int saved = errno;
    parent_goes_on();
    errno = saved;
}

/* memkind's jemalloc has its own handlers, which run before ours, as they are younger. Nobody
 * who holds a lock of the heaps waits for memkind: only the control thread is ever inside it, with
 * no lock but the gate. The gate's handler is younger still, so a fork waits for the control thread
 * first, with nothing held, and then takes memkind's locks, and then ours. */
static void gate_begins(void)
{
    if (forking > 0 || gated != OPEN)
        return;
    supply_gate_take();
    gated = BY_HANDLER;
    spare_serves(true);
}

static void gate_ends(void)
{
    if (forking == 0 && gated == BY_HANDLER) {
        spare_serves(false);
        open_gate();
    }
}

int fork_install_gate(void)
{
    return -pthread_atfork(gate_begins, gate_ends, gate_ends);
}
