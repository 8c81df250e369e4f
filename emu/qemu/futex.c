/* SPDX-License-Identifier: BSD-2-Clause
 * Clocks of futexes. See futex.h.
 *
 * They lie in a table hashed by address; two futexes that share an entry make a thread a
 * little late at worst, as threads are never far apart. */
#include "qemu/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <time.h>

#include "qemu/guest.h"
#include "qemu/shared.h"
#include "qemu/times.h"

/* A futex is named by a key: its address, or what processes that share it have in common
 * (shared.h). Entries of these are the machine's: who begins to wait while another process
 * wakes is not found by the release, and takes the time from here. A process that is killed
 * while it waits leaves `waiting` too high, and one is woken where it could have been all. */

/* A wake of this many is one of all: INT_MAX and what comes near. */
#define ALL (1u << 30)

static struct emu_futex own[EMU_FUTEXES];

static struct emu_futex *entry_of(uint64_t key)
{
    struct emu_futex *table = key & EMU_SHARED_KEY ? emu_core_machine()->shared_futex : own;
    return &table[(key * 0x9E3779B97F4A7C15u) >> 32 & (EMU_FUTEXES - 1)];
}

static uint64_t key_of(uint64_t address)
{
    bool private = (guest_self()->call.arg[1] & FUTEX_PRIVATE_FLAG) != 0;
    return private ? address : shared_key(address);
}

static void raise_to(_Atomic int64_t *p, int64_t v)
{
    int64_t old = atomic_load(p);
    while (old < v && !atomic_compare_exchange_weak(p, &old, v))
        ;
}

static int64_t woken_at(uint64_t key)
{
    struct emu_futex *e = entry_of(key);
    int64_t t = atomic_load(&e->woken), u;
    uint64_t to = atomic_load(&e->moved_to);

    if (!to)
        return t;
    u = atomic_load(&entry_of(to)->woken);
    return u > t ? u : t;
}

static void wakes(uint64_t key, uint32_t how_many)
{
    struct emu_futex *e = entry_of(key);

    emu_settle();
    if (how_many >= ALL)
        emu_catch_up(atomic_exchange(&e->arrived, 0));
    raise_to(&e->woken, emu_now());
    /* Of several one is woken, and which is not known here: that one comes by itself. */
    if (how_many >= atomic_load(&e->waiting))
        emu_release(key, emu_now());
    else if (key & EMU_SHARED_KEY)
        emu_release_some(key, emu_now(), (int)how_many);
}

/* NULL: no timeout. */
static void set_deadline(uint64_t timeout, bool relative, bool realtime)
{
    struct guest_call *c = &guest_self()->call;
    struct guest_timespec t;

    if (timeout == 0 || guest_read(timeout, &t, sizeof(t)) < 0)
        return;
    if (relative)
        c->deadline = emu_now() + times_ps(&t);
    else
        c->deadline = times_real_deadline(realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout);
}

static void waits(uint64_t address, uint32_t value, uint64_t timeout, bool relative, bool realtime)
{
    struct guest_call *c = &guest_self()->call;
    uint64_t key = key_of(address);
    struct emu_futex *e = entry_of(key);
    uint32_t now;

    /* It has changed: the call will not block. */
    if (guest_read(address, &now, sizeof(now)) < 0 || now != value)
        return;
    set_deadline(timeout, relative, realtime);
    c->key = key;
    atomic_fetch_add(&e->waiting, 1);
    /* Before it is away: who wakes all catches up with all who came. */
    emu_settle();
    raise_to(&e->arrived, emu_now());
    guest_away(key);
}

void futex_enter(void)
{
    struct guest_call *c = &guest_self()->call;
    const uint64_t *a = c->arg;
    uint32_t op = (uint32_t)a[1], value = (uint32_t)a[2];
    bool realtime = (op & FUTEX_CLOCK_REALTIME) != 0;

    switch (op & (uint32_t)FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        waits(a[0], value, a[3], true, false);
        break;
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
        waits(a[0], value, a[3], false, realtime);
        break;
    case FUTEX_LOCK_PI:
    case 13: /* FUTEX_LOCK_PI2: not in older headers */
        c->key = key_of(a[0]);
        atomic_fetch_add(&entry_of(c->key)->waiting, 1);
        guest_away(c->key);
        break;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        wakes(key_of(a[0]), value);
        break;
    case FUTEX_WAKE_OP:
        wakes(key_of(a[0]), value);
        wakes(key_of(a[4]), (uint32_t)a[3]);
        break;
    case FUTEX_UNLOCK_PI:
        wakes(key_of(a[0]), 1);
        break;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI:
        atomic_store(&entry_of(key_of(a[0]))->moved_to, key_of(a[4]));
        wakes(key_of(a[0]), value);
        break;
    default:
        break;
    }
}

void futex_leave(int64_t result)
{
    struct guest_call *c = &guest_self()->call;
    uint32_t op = (uint32_t)c->arg[1] & (uint32_t)FUTEX_CMD_MASK;

    if (c->key) {
        atomic_fetch_sub(&entry_of(c->key)->waiting, 1);
        if (result == -ETIMEDOUT && c->deadline >= 0)
            guest_back(c->deadline);
        else
            guest_back(result == -EINTR ? -1 : woken_at(c->key));
        /* Whoever comes back from a timeout may be far ahead. */
        emu_settle();
    } else if (result == -EAGAIN && (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET)) {
        /* The waker was quicker. */
        emu_catch_up(woken_at(key_of(c->arg[0])));
    }
}

void futex_thread_ends(uint64_t clear_tid)
{
    if (clear_tid)
        wakes(clear_tid, UINT_MAX);
}

void futex_forked(void)
{
    for (int i = 0; i < EMU_FUTEXES; i++) {
        atomic_store(&own[i].arrived, 0);
        atomic_store(&own[i].waiting, 0);
    }
}
