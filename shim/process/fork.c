/* SPDX-License-Identifier: BSD-2-Clause
 * fork: every lock of ours is taken in the order in which they nest, so that
 * the child finds everything at rest. */
#include <errno.h>
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
#include "sys/next.h"
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
/* Forks of this thread under way: a handler of a signal may fork in the middle of one, or a
 * handler of the program's that runs inside of ours. */
static __thread int forking __attribute__((tls_model("initial-exec")));

/* memkind's own handlers, which come late: kept from the libc, and called in the middle of ours.
 * Where the libc calls them, the program's handlers of before run in the child when memkind is
 * still locked, and one that forks never comes back. */
#define KEPT_MAX 8
static struct kept {
    void (*prepare)(void);
    void (*parent)(void);
    void (*child)(void);
} kept[KEPT_MAX];
static unsigned n_kept;
static __thread bool keeping __attribute__((tls_model("initial-exec")));
static __thread bool kept_began __attribute__((tls_model("initial-exec"))); /* they, of this fork */

/* The gate of memkind, for this fork: by its own handler, or late, by a fork that began before
 * that was there. Such a fork may hold memkind's locks already, so it does not wait without end.
 * A child of a fork that memkind was not told of does without: memkind knows threads that the child
 * does not have. */
static __thread enum { OPEN, BY_HANDLER, LATE } gated __attribute__((tls_model("initial-exec")));

/* A child without memkind. Whoever held the gate is not here, so nobody waits for it. */
static bool without;

static void do_without(void)
{
    without = true;
    supply_abandon();
}

static void take_gate_late(void)
{
    for (int i = 0; i < GATE_TRIES && gated == OPEN && !without && supply_loaded(); i++) {
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

void fork_keep_handlers(bool on)
{
    keeping = on;
}

bool fork_keeps(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    if (!keeping || n_kept == KEPT_MAX)
        return false;
    kept[n_kept] = (struct kept){prepare, parent, child};
    __atomic_store_n(&n_kept, n_kept + 1, __ATOMIC_RELEASE);
    return true;
}

/* The youngest first, as the libc does. They may make records of this thread. */
static void tell_before(void)
{
    kept_began = gated != OPEN && supply_loaded() && __atomic_load_n(&n_kept, __ATOMIC_ACQUIRE) > 0;
    if (!kept_began)
        return;
    spare_serves(true);
    hy_guard_enter();
    for (unsigned i = n_kept; i > 0; i--)
        if (kept[i - 1].prepare)
            kept[i - 1].prepare();
    hy_guard_leave();
}

static void tell_after(bool in_child)
{
    if (!kept_began)
        return;
    hy_guard_enter();
    for (unsigned i = 0; i < n_kept; i++) {
        void (*fn)(void) = in_child ? kept[i].child : kept[i].parent;
        if (fn)
            fn();
    }
    hy_guard_leave();
    spare_serves(false);
    kept_began = false;
}

/* `handlers`: of a fork for which handlers run. */
static void begin(bool handlers)
{
    if (forking++ > 0)
        return;
    in_handler = hy_locks_depth > (gated == BY_HANDLER ? 1 : 0);
    control_prefork();
    take_gate_late();
    if (handlers)
        tell_before();
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

static void fork_begins(void)
{
    begin(true);
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
    if (forking > 1) {
        forking--;
        return;
    }
    supply_postfork(child);
    if (child) {
        supply_child();
        if (supply_loaded() && !kept_began && (n_kept > 0 || gated != BY_HANDLER))
            do_without();
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
    tell_after(child);
    forking--;
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
        do_without();
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
    pause_own_page();
    hy_guard_enter(); /* it may allocate */
    (void)next_at_fork(fork_begins, parent_goes_on, child_begins, NULL);
    hy_guard_leave();
    installed = true;
}

/* memkind's handlers do not run, so its child never asks it again. */
bool fork_unhandled_begins(void)
{
    if (installed)
        begin(false);
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
    begin(false);
    return true;
}

void fork_limit_ends(void)
{
    int saved = errno;
    parent_goes_on();
    errno = saved;
}

bool fork_is_refused(void)
{
    int saved = errno;
    if (!installed || forking > 0 || !supply_has_files() || runtime_is_sandboxed() ||
        !os_is_limited() || !pause_memory_is_ours())
        return false;
    begin(false);
    bool refused = supply_is_shared();
    parent_goes_on();
    errno = refused ? ENOMEM : saved;
    return refused;
}

/* Nobody who holds a lock of the heaps waits for memkind: only the control thread is ever inside
 * it, with no lock but the gate. The gate's handler is younger than all of before, so a fork waits
 * for the control thread first, with nothing held; ours takes memkind's locks, and then our own.
 * Where the program had loaded memkind, that one's handlers stand with the program's: n_kept 0. */
static void gate_begins(void)
{
    if (forking > 0 || gated != OPEN || without)
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
    return -next_at_fork(gate_begins, gate_ends, gate_ends, NULL);
}
