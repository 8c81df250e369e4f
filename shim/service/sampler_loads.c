/* SPDX-License-Identifier: BSD-2-Clause
 * Reads by precise samples of loads (sys/loads.h). A ring belongs to one thread, as the kernel lets
 * no inherited event have one; so at the start of a pass each thread is given one, as far as there
 * are, and at its end they are closed: nothing is sampled while nobody looks.
 *
 * The processor has few counters. Where our event has to wait for one, others lose as much: the
 * program's own, or those that the class is found from. Then this source gives way, for good. */
#include <errno.h>
#include <string.h>

#include "decide/coverage.h"
#include "service/sampler.h"
#include "service/sampler_loads.h"
#include "sys/usage.h"

#define RINGS      64u
#define ORDER      2u /* pages of a ring: 682 samples */
#define RING_BYTES (((1u << ORDER) + 1) * HY_PAGE)
#define AT_ONCE    16u /* rings opened in one step: 0.3 ms, while the sampler is locked */
#define IDS        1024u
#define OUR_SHARE  4u /* of the memory for samples that a user may have, a fourth */
#define WAITED_PCT 5u
#define EVENTS     8u

static struct {
    bool gave_way;
    const struct load_event *forced;
    struct load_event e;
    uint64_t period, other; /* other: of the rings of this pass */
    uint64_t random;
    /* Of the calling thread, never read. While one event is open the kernel need not switch
     * sampling on and off, which takes it tens of milliseconds. */
    struct os_load_ring own;
    struct os_load_ring ring[RINGS];
    unsigned rings, room;
    unsigned calls;             /* of next_round */
    unsigned first;             /* thread to begin with, so that each has its turn */
    uint64_t pass_ns, round_ns; /* since when */
    struct sample_counts pass;
    struct loads_view view;
} s;

void sampler_loads_use(const struct load_event *e)
{
    s.forced = e;
    s.gave_way = false;
}

void sampler_loads_get(struct loads_view *ret)
{
    *ret = s.view;
    ret->meaning = s.e.meaning ? s.e.meaning : "";
    ret->period = s.period;
}

static void close_rings(void)
{
    for (unsigned i = 0; i < s.rings; i++)
        os_load_close(&s.ring[i]);
    s.rings = 0;
}

static void close_all(void)
{
    close_rings();
    os_load_close(&s.own);
}

/* How many rings leave most of a user's memory for samples to others. */
static unsigned room_for_rings(void)
{
    int kib = 0;
    if (os_perf_mlock_kb(&kib) != 0 || kib <= 0)
        return 1;
    uint64_t all = (uint64_t)kib * 1024 * (uint64_t)os_cpu_count();
    return (unsigned)HY_MIN(HY_MAX(all / OUR_SHARE / RING_BYTES, (uint64_t)1), (uint64_t)RINGS);
}

/* Permission is what a user can change: it is told before the rest. */
static int more_telling(int old, int r)
{
    return old == -EACCES || old == -EPERM ? old : r;
}

static int open_loads(void)
{
    struct load_event e[EVENTS];
    unsigned n = s.forced ? 1 : load_events("/sys", e, EVENTS);
    int r = -ENODEV;
    close_all();
    if (s.gave_way)
        return -EBUSY;
    if (os_seccomp() != 0)
        return -EACCES;
    if (s.forced)
        e[0] = *s.forced;
    for (unsigned i = 0; i < n && r != 0; i++) {
        int one = os_load_open(&e[i].os, e[i].period, 0, 0, &s.own);
        r = one == 0 ? 0 : more_telling(r, one);
        if (r == 0)
            s.e = e[i];
    }
    if (r != 0)
        return r;
    s.period = s.e.period;
    s.room = room_for_rings();
    s.calls = 0;
    s.random ^= os_now_ns();
    return 0;
}

/* --- which threads --------------------------------------------------------------------- */

static bool has_ring(int32_t tid)
{
    for (unsigned i = 0; i < s.rings; i++)
        if (s.ring[i].tid == tid)
            return true;
    return false;
}

static void open_rings(void)
{
    int32_t id[IDS];
    int own = os_gettid(), n = os_thread_ids(id, IDS);
    unsigned opened = 0;
    bool free_of_filters = false;
    n = HY_MIN(n, (int)IDS);
    s.view.left_out = 0;
    for (int i = 0; i < n; i++) {
        int32_t tid = id[(s.first + (unsigned)i) % (unsigned)n];
        if (tid == own || has_ring(tid))
            continue;
        /* One may have come since the pass began. */
        if (!free_of_filters && os_seccomp() != 0) {
            close_all();
            return;
        }
        free_of_filters = true;
        int r = s.rings < s.room && opened < AT_ONCE
                    ? os_load_open(&s.e.os, s.other, tid, ORDER, &s.ring[s.rings])
                    : -ENOSPC;
        opened += r == 0;
        s.rings += r == 0;
        s.view.left_out += r != 0 && r != -ESRCH;
        if (r == -EPERM || r == -ENOMEM) /* of this memory there is no more */
            s.room = s.rings;
    }
    s.view.threads = s.rings;
}

static int next_round(void)
{
    uint64_t now = os_now_ns();
    if (!s.own.base)
        return -EBUSY;
    if (s.calls++ % HISTORY_ROUNDS == 0) { /* a pass begins */
        close_rings();                     /* of a pass that was broken off */
        s.room = room_for_rings();
        s.first += s.room;
        s.pass = (struct sample_counts){0};
        s.pass_ns = now;
    }
    if (s.rings == 0)
        s.other = sample_other_period(s.period, random_next(&s.random), s.e.unit);
    open_rings();
    s.round_ns = now;
    return 0;
}

/* --- samples --------------------------------------------------------------------------- */

struct take {
    sampler_access_fn fn;
    int n;
};

static void take(void *ctx, uint64_t address, uint64_t source)
{
    struct take *t = ctx;
    enum sample_kind kind = sample_kind_of(address, source, s.e.any);
    if (kind == SAMPLE_NONE)
        return;
    t->fn((uintptr_t)address, kind == SAMPLE_STORE);
    t->n++;
}

static void add(struct sample_counts *to, const struct sample_counts *c)
{
    to->samples += c->samples;
    to->lost += c->lost;
    to->throttled += c->throttled;
    to->broken += c->broken;
}

static uint64_t period_after(const struct sample_counts *c, uint64_t since)
{
    return sample_period(s.period, c->samples + c->lost, os_now_ns() - since, s.e.unit,
                         s.e.period / 4);
}

static int drain(sampler_access_fn fn)
{
    struct take t = {.fn = fn};
    struct sample_counts round = {0};
    bool wanted = false;
    for (unsigned i = 0; i < s.rings; i++) {
        struct os_load_records r;
        if (!os_load_records(&s.ring[i], &r))
            continue;
        struct sample_ring ring = {.data = r.data, .size = r.size, .head = r.head, .tail = r.tail};
        os_load_read(&s.ring[i], sample_ring_read(&ring, take, &t, &round));
        wanted |= os_load_waited_pct(&s.ring[i]) >= WAITED_PCT;
    }
    add(&s.pass, &round);
    add(&s.view.counts, &round);
    if (wanted) {
        s.view.given_way++;
        s.gave_way = true;
        close_all();
        return -EBUSY;
    }
    if (s.rings == 0)
        return t.n;
    bool last = s.calls % HISTORY_ROUNDS == 0;
    /* Far too many are not borne until the pass ends. */
    uint64_t period = last ? period_after(&s.pass, s.pass_ns) : period_after(&round, s.round_ns);
    if (last || period >= 4 * s.period) {
        close_rings();
        s.period = period;
    }
    return t.n;
}

static bool alive(void)
{
    return s.own.base && s.own.pid == os_pid();
}

const struct sampler_source sampler_loads = {
    .name = "load-samples",
    .reads = true,
    .open = open_loads,
    .close = close_all,
    .next_round = next_round,
    .drain = drain,
    .alive = alive,
};
