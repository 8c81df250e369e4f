/* SPDX-License-Identifier: BSD-2-Clause
 * fork: every lock of ours is taken in the order in which they nest, so that
 * the child finds everything at rest. */
#include <pthread.h>
#include <stdbool.h>

#include "base/guard.h"
#include "runtime/internal.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "service/sites.h"
#include "service/supply.h"
#include "sys/log.h"

/* What was locked: the state may change between the handlers. */
static __thread bool locked __attribute__((tls_model("initial-exec")));

static void before(void)
{
    control_prefork();
    locked = runtime_state() == HY_STEERING || runtime_state() == HY_ENDED;
    if (!locked)
        return;
    sites_prefork();
    maps_prefork();
    heap_prefork();
    policy_prefork();
    supply_prefork();
}

static void after(bool child)
{
    if (locked) {
        if (child)
            supply_postfork_child();
        policy_postfork(child);
        heap_postfork();
        maps_postfork();
        sites_postfork();
        locked = false;
    } else if (child && runtime_state() == HY_ENGAGING) {
        runtime_go_passive("forked while memkind was being loaded");
    }
    if (child) {
        control_postfork_child();
        log_drop_stderr();
    }
}

static void after_in_parent(void)
{
    after(false);
}

static void after_in_child(void)
{
    after(true);
}

void fork_install(void)
{
    hy_guard_enter(); /* pthread_atfork may allocate */
    (void)pthread_atfork(before, after_in_parent, after_in_child);
    hy_guard_leave();
}
