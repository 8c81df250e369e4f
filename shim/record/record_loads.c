/* SPDX-License-Identifier: BSD-2-Clause
 * Accesses of a recording by the processor's samples (pages/sampler_rings.h), from the control
 * thread's first turn to the end of the program.
 *
 * Loads and stores take turns where they are events of their own, so that one counter is enough for
 * both; the period is adapted and changed from turn to turn. Other than the page sampler, which
 * compares pages within a pass, a recording needs lines: a sample counts as many as its period
 * says, and as many threads as each one sampled stands for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pages/sampler_rings.h"
#include "record/record_access.h"
#include "sys/log.h"
#include "sys/os.h"

#define TURN_NS                                                                                    \
    100000000ull /* and up to half of it more, or what is done in turns is seen in part */
#define GAP_NS   10000000ull /* between two looks for new threads */
#define NS_PER_S 1e9

static struct {
    enum { NOT_YET, SAMPLES, OVER } state;
    const char *why;
    int error;
    struct load_rings r;
    struct load_event event[ACCESS_KINDS];
    uint64_t period[ACCESS_KINDS];
    bool stores, both;        /* in turns; or the same samples tell of both */
    unsigned turns;           /* since it was last asked for both */
    enum access_kind now;     /* whose turn */
    uint64_t begun, ended;    /* ns */
    uint64_t last, tick, due; /* read, served; the turn ends */
    uint64_t turn_ns;         /* it began */
    uint64_t seen[ACCESS_KINDS];
    struct sample_counts counts, turn;
} l;

bool record_loads_possible(void)
{
    struct load_event e[LOAD_EVENTS];
    return load_rings_events(false, e) > 0;
}

void record_loads_child(void)
{
    memset(&l, 0, sizeof(l));
}

static void stop(const char *why, int error)
{
    l.state = OVER;
    l.why = why;
    l.error = error;
    l.ended = os_now_ns();
    load_rings_close(&l.r);
}

/* --- what came ------------------------------------------------------------------------ */

struct take {
    record_access_fn fn;
    double each;
};

static void take(void *ctx, uint64_t address, uint64_t source)
{
    struct take *t = ctx;
    double lines[ACCESS_KINDS] = {0};
    enum sample_kind kind = sample_kind_of(address, source, l.event[l.now].filter);
    if (kind == SAMPLE_NONE && l.both)
        kind = sample_kind_of(address, source, SAMPLE_MISSED_STORES);
    if (kind == SAMPLE_NONE)
        return;
    lines[kind == SAMPLE_STORE ? ACCESS_WRITTEN : ACCESS_READ] = t->each;
    t->fn((uintptr_t)address, lines);
}

void record_loads_drain(record_access_fn fn)
{
    struct sample_counts counts = {0};
    uint64_t now = os_now_ns(), since = l.last;
    if (l.state != SAMPLES)
        return;
    l.last = now;
    if (l.r.rings == 0)
        return;
    struct take t = {fn, (double)l.r.other * (1 + (double)l.r.left_out / (double)l.r.rings)};
    int e = load_rings_read(&l.r, take, &t, &counts);
    load_counts_add(&l.counts, &counts);
    load_counts_add(&l.turn, &counts);
    for (int k = 0; k < ACCESS_KINDS; k++)
        l.seen[k] += l.both || k == (int)l.now ? now - since : 0;
    if (e != 0)
        stop("others wanted the processor's counters", e);
}

/* --- turns ------------------------------------------------------------------------------ */

static void begin(void)
{
    struct load_event e[LOAD_EVENTS];
    unsigned n = load_rings_events(false, e);
    int r = load_rings_open(&l.r, e, n);
    l.begun = os_now_ns();
    if (r != 0) {
        stop(r == -EBUSY ? "pages are being sampled" : "loads cannot be sampled", r);
        log_info("recording: reads and writes of call sites are not known (%s: %s)", l.why,
                 os_error_name(r));
        return;
    }
    l.state = SAMPLES;
    l.event[ACCESS_READ] = l.r.e;
    l.both = l.r.e.filter == SAMPLE_FROM_MEMORY;
    n = l.both ? 0 : load_rings_events(true, e);
    for (unsigned i = 0; i < n && !l.stores; i++) {
        l.stores = load_rings_try(&e[i]) == 0;
        l.event[ACCESS_WRITTEN] = e[i];
    }
    for (int k = 0; k < ACCESS_KINDS; k++)
        l.period[k] = l.event[k].period;
    log_info("recording: accesses of call sites by samples of the processor (%s)%s", l.r.e.meaning,
             l.both || l.stores ? ", of loads and stores" : ", of loads only");
}

static void begin_turn(enum access_kind k)
{
    /* Other threads only when these have had both turns. */
    if (k == ACCESS_READ)
        load_rings_turn(&l.r);
    else
        load_rings_drop(&l.r);
    l.now = k;
    l.r.e = l.event[k];
    l.r.period = l.period[k];
    l.turn = (struct sample_counts){0};
    l.turn_ns = l.last = os_now_ns();
    l.due = l.turn_ns + TURN_NS + l.r.other * 2654435761u % (TURN_NS / 2);
}

void record_loads_tick(record_access_fn fn)
{
    uint64_t now = os_now_ns();
    if (l.state == NOT_YET) {
        begin();
        if (l.state == SAMPLES)
            begin_turn(ACCESS_READ);
    } else if (now - l.tick < GAP_NS) {
        return;
    }
    record_loads_drain(fn);
    if (l.state != SAMPLES)
        return;
    /* Far too many are not borne until the turn ends. */
    uint64_t period = load_rings_period(&l.r, &l.turn, l.turn_ns);
    if (now >= l.due || period >= 4 * l.r.period) {
        l.period[l.now] = period;
        l.turns += now >= l.due;
        begin_turn(l.stores && now >= l.due ? ACCESS_WRITTEN - l.now : l.now);
    }
    bool none = l.r.rings == 0;
    while (load_rings_serve(&l.r) > 0) /* nobody waits for this thread */
        ;
    l.tick = os_now_ns();
    if (none) /* seen from here on */
        l.last = l.tick;
    if (!load_rings_work(&l.r))
        stop("a seccomp filter has come into force", -EACCES);
}

bool record_loads_seen_both(void)
{
    if (l.stores && l.turns < 2)
        return false;
    l.turns = 0;
    return true;
}

/* --- what it was ------------------------------------------------------------------------- */

void record_loads_sums(struct access_sums *ret)
{
    uint64_t end = l.state == OVER ? l.ended : l.last, all = end - HY_MIN(l.begun, end);
    ret->instructions = true;
    ret->lost = l.counts.samples ? (double)l.counts.lost / (double)l.counts.samples : 0;
    for (int k = 0; k < ACCESS_KINDS; k++)
        ret->seen[k] = all ? HY_MIN((double)l.seen[k] / (double)all, 1) : 0;
}

void record_loads_describe(bool scaled, char *buf, size_t cap)
{
    if (l.counts.samples == 0) {
        (void)snprintf(buf, cap, "%s%s%s", l.why ? l.why : "no sample has come",
                       l.error ? ": " : "", l.error ? os_error_name(l.error) : "");
        return;
    }
    int n = snprintf(buf, cap, "load-samples%s%s", l.stores || l.both ? " and store-samples" : "",
                     scaled ? ", sums by the counters" : "");
    if (l.state == OVER && n > 0 && (size_t)n < cap)
        (void)snprintf(buf + n, cap - (size_t)n, ", of the first %.1f s",
                       (double)(l.ended - l.begun) / NS_PER_S);
}
