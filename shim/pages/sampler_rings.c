/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/sampler_rings.h"

#include <errno.h>

#include "pages/rules/coverage.h"
#include "sys/usage.h"

#define ORDER      2u /* pages of a ring: 682 samples */
#define RING_BYTES (((1u << ORDER) + 1) * HY_PAGE)
#define AT_ONCE    16u /* rings opened in one step: 0.3 ms, while callers are locked */
#define IDS        1024u
#define OUR_SHARE  4u /* of the memory for samples that a user may have, a fourth */
#define WAITED_PCT 5u

static const struct load_event *forced[2]; /* loads, stores */

/* The process whose set is open, times two, and whether it takes a counter; 0: none. A child
 * inherits the word, not the rings. */
static uint64_t held;

void load_rings_use(const struct load_event *loads, const struct load_event *stores)
{
    forced[false] = loads;
    forced[true] = stores;
}

unsigned load_rings_events(bool stores, struct load_event ret[LOAD_EVENTS])
{
    if (forced[false]) {
        if (forced[stores])
            ret[0] = *forced[stores];
        return forced[stores] != NULL;
    }
    return (stores ? store_events : load_events)("/sys", ret, LOAD_EVENTS);
}

bool load_rings_work(const struct load_rings *r)
{
    return r->own.base && r->own.pid == os_pid();
}

static bool stop_rings(struct load_rings *r)
{
    uint64_t old = __atomic_load_n(&held, __ATOMIC_ACQUIRE), pid = (uint64_t)os_pid();
    do {
        if (old / 2 == pid)
            return false;
    } while (!__atomic_compare_exchange_n(&held, &old, 2 * pid, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    r->holder = (int32_t)pid;
    return true;
}

void load_rings_drop(struct load_rings *r)
{
    for (unsigned i = 0; i < r->rings; i++)
        os_load_close(&r->ring[i]);
    if (r->rings > 0)
        r->served = r->rings;
    r->rings = 0;
}

void load_rings_close(struct load_rings *r)
{
    load_rings_drop(r);
    os_load_close(&r->own);
    if (r->holder && r->holder == os_pid())
        __atomic_store_n(&held, 0, __ATOMIC_RELEASE);
    r->holder = 0;
}

/* How many rings leave most of a user's memory for samples to others. */
static unsigned room_for_rings(void)
{
    int kib = 0;
    if (os_perf_mlock_kb(&kib) != 0 || kib <= 0)
        return 1;
    uint64_t all = (uint64_t)kib * 1024 * (uint64_t)os_cpu_count();
    return (unsigned)HY_MIN(HY_MAX(all / OUR_SHARE / RING_BYTES, (uint64_t)1),
                            (uint64_t)LOAD_RINGS);
}

/* Permission is what a user can change: it is told before the rest. */
static int more_telling(int old, int r)
{
    return old == -EACCES || old == -EPERM ? old : r;
}

int load_rings_open(struct load_rings *r, const struct load_event *events, unsigned n)
{
    int found = -ENODEV;
    load_rings_close(r);
    if (os_seccomp() != 0)
        return -EACCES;
    if (!stop_rings(r))
        return -EBUSY;
    for (unsigned i = 0; i < n && found != 0; i++) {
        int one = os_load_open(&events[i].os, events[i].period, 0, 0, &r->own);
        found = one == 0 ? 0 : more_telling(found, one);
        if (found == 0)
            r->e = events[i];
    }
    if (found != 0) {
        load_rings_close(r);
        return found;
    }
    __atomic_store_n(&held, 2 * (uint64_t)r->holder + (r->e.os.precise > 0), __ATOMIC_RELEASE);
    r->period = r->e.period;
    r->room = room_for_rings();
    r->random ^= os_now_ns();
    return 0;
}

int load_rings_try(const struct load_event *e)
{
    struct os_load_ring ring;
    if (os_seccomp() != 0)
        return -EACCES;
    int r = os_load_open(&e->os, e->period, 0, 0, &ring);
    if (r == 0)
        os_load_close(&ring);
    return r;
}

bool load_rings_take_counter(void)
{
    struct load_event e[LOAD_EVENTS];
    uint64_t now = __atomic_load_n(&held, __ATOMIC_ACQUIRE);
    /* AMD's samples have a unit of their own, which is asked for by no precision. */
    if (now / 2 == (uint64_t)os_pid())
        return now & 1;
    for (unsigned i = 0, n = load_rings_events(false, e); i < n; i++)
        if (load_rings_try(&e[i]) == 0)
            return e[i].os.precise > 0;
    return false;
}

/* --- which threads --------------------------------------------------------------------- */

static bool has_ring(const struct load_rings *r, int32_t tid)
{
    for (unsigned i = 0; i < r->rings; i++)
        if (r->ring[i].tid == tid)
            return true;
    return false;
}

void load_rings_turn(struct load_rings *r)
{
    load_rings_drop(r);
    r->room = room_for_rings();
    r->first += HY_MAX(r->served, 1u);
}

unsigned load_rings_serve(struct load_rings *r)
{
    int32_t id[IDS];
    int own = os_gettid(), n = os_thread_ids(id, IDS);
    unsigned opened = 0;
    bool free_of_filters = false;
    n = HY_MIN(n, (int)IDS);
    r->left_out = 0;
    if (r->rings == 0)
        r->other = sample_other_period(r->period, random_next(&r->random), r->e.unit);
    for (int i = 0; i < n; i++) {
        int32_t tid = id[(r->first + (unsigned)i) % (unsigned)n];
        if (tid == own || has_ring(r, tid))
            continue;
        /* One may have come since the turn began. */
        if (!free_of_filters && os_seccomp() != 0) {
            load_rings_close(r);
            return 0;
        }
        free_of_filters = true;
        int e = r->rings < r->room && opened < AT_ONCE
                    ? os_load_open(&r->e.os, r->other, tid, ORDER, &r->ring[r->rings])
                    : -ENOSPC;
        opened += e == 0;
        r->rings += e == 0;
        r->left_out += e != 0 && e != -ESRCH;
        if (e == -EPERM || e == -ENOMEM) /* of this memory there is no more */
            r->room = r->rings;
    }
    return opened;
}

/* --- samples --------------------------------------------------------------------------- */

void load_counts_add(struct sample_counts *to, const struct sample_counts *c)
{
    to->samples += c->samples;
    to->lost += c->lost;
    to->throttled += c->throttled;
    to->broken += c->broken;
}

uint64_t load_rings_period(const struct load_rings *r, const struct sample_counts *c,
                           uint64_t since_ns)
{
    return sample_period(r->period, c->samples + c->lost, os_now_ns() - since_ns, r->e.unit,
                         r->e.period / 4);
}

int load_rings_read(struct load_rings *r, void (*fn)(void *ctx, uint64_t address, uint64_t source),
                    void *ctx, struct sample_counts *counts)
{
    bool wanted = false;
    for (unsigned i = 0; i < r->rings; i++) {
        struct os_load_records now;
        if (!os_load_records(&r->ring[i], &now))
            continue;
        struct sample_ring ring = {
            .data = now.data, .size = now.size, .head = now.head, .tail = now.tail};
        os_load_read(&r->ring[i], sample_ring_read(&ring, fn, ctx, counts));
        wanted |= os_load_waited_pct(&r->ring[i]) >= WAITED_PCT;
    }
    if (wanted)
        load_rings_close(r);
    return wanted ? -EBUSY : 0;
}
