/* SPDX-License-Identifier: BSD-2-Clause
 * Reads by precise samples of loads (sampler_rings.h): at the start of a pass each thread is given
 * a ring, as far as there are, and at its end they are closed: nothing is sampled while nobody
 * looks.
 *
 * The processor has few counters. Where our event has to wait for one, others lose as much: the
 * program's own, or those that the class is found from. Then this source gives way, for good. */
#include "pages/sampler_loads.h"

#include <errno.h>

#include "pages/sampler.h"

static struct {
    bool gave_way;
    struct load_rings r;
    unsigned calls;             /* of next_round */
    uint64_t pass_ns, round_ns; /* since when */
    struct sample_counts pass;
    struct loads_view view;
} s;

void sampler_loads_use(const struct load_event *e)
{
    load_rings_use(e, NULL);
    s.gave_way = false;
}

void sampler_loads_get(struct loads_view *ret)
{
    *ret = s.view;
    ret->meaning = s.r.e.meaning ? s.r.e.meaning : "";
    ret->period = s.r.period;
}

static void close_all(void)
{
    load_rings_close(&s.r);
}

static int open_loads(void)
{
    struct load_event e[LOAD_EVENTS];
    unsigned n = load_rings_events(false, e);
    close_all();
    if (s.gave_way)
        return -EBUSY;
    s.calls = 0;
    return load_rings_open(&s.r, e, n);
}

static int next_round(void)
{
    uint64_t now = os_now_ns();
    if (!s.r.own.base)
        return -EBUSY;
    if (s.calls++ % HISTORY_ROUNDS == 0) { /* a pass begins */
        load_rings_turn(&s.r);             /* rings of a pass that was broken off are closed */
        s.pass = (struct sample_counts){0};
        s.pass_ns = now;
    }
    (void)load_rings_serve(&s.r);
    s.view.left_out = s.r.left_out;
    s.view.threads = s.r.rings;
    s.round_ns = now;
    return 0;
}

struct take {
    sampler_access_fn fn;
    int n;
};

static void take(void *ctx, uint64_t address, uint64_t source)
{
    struct take *t = ctx;
    enum sample_kind kind = sample_kind_of(address, source, s.r.e.filter);
    if (kind == SAMPLE_NONE)
        return;
    t->fn((uintptr_t)address, kind == SAMPLE_STORE);
    t->n++;
}

static int drain(sampler_access_fn fn)
{
    struct take t = {.fn = fn};
    struct sample_counts round = {0};
    int e = load_rings_read(&s.r, take, &t, &round);
    load_counts_add(&s.pass, &round);
    load_counts_add(&s.view.counts, &round);
    if (e != 0) {
        s.view.given_way++;
        s.gave_way = true;
        return e;
    }
    if (s.r.rings == 0)
        return t.n;
    bool last = s.calls % HISTORY_ROUNDS == 0;
    /* Far too many are not borne until the pass ends. */
    uint64_t period = last ? load_rings_period(&s.r, &s.pass, s.pass_ns)
                           : load_rings_period(&s.r, &round, s.round_ns);
    if (last || period >= 4 * s.r.period) {
        load_rings_drop(&s.r);
        s.r.period = period;
    }
    return t.n;
}

static bool alive(void)
{
    return load_rings_work(&s.r);
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
