/* SPDX-License-Identifier: BSD-2-Clause */
#include "classify/rules/tally.h"

#define ASLEEP 0.05 /* threads running on average, below which a window tells nothing */

bool tally_adds_up(enum window_field f)
{
    const uint32_t not_sums = 1u << WINDOW_end_ns | 1u << WINDOW_threads | 1u << WINDOW_dram_bytes |
                              1u << WINDOW_pm_bytes | 1u << WINDOW_counted_pct | 1u << WINDOW_cap;

    return !(not_sums >> f & 1);
}

/* Threads that would run with all data on one memory: without this library, which is what the
 * times are compared with, nothing would hold them. */
static double unheld(const struct window *w, double running)
{
    double cap = window_get(w, WINDOW_cap), threads = window_get(w, WINDOW_threads);
    return cap > 0 && cap < threads ? running * threads / cap : running;
}

static void predict(struct tally *t, const struct machine_figures *f, const struct window *w)
{
    struct work k;
    enum stall_known known;
    double elapsed = window_get(w, WINDOW_elapsed_ns);

    if (work_of_window(f, w, &k, &known) != 0 || k.threads < ASLEEP || elapsed <= 0)
        return;
    double dram = work_time(f, &k, 0, 0, unheld(w, k.threads)).total_ns;
    double pm = work_time(f, &k, 1, 1, unheld(w, k.threads)).total_ns;
    struct work_time as_placed = work_time(f, &k, k.pm_reads, k.pm_writes, k.threads);
    double placed = as_placed.total_ns;
    if (!(dram > 0 && placed > 0 && pm > 0))
        return;
    t->judged++;
    t->placed_ns += elapsed;
    t->service_ns += as_placed.service_ns;
    t->busy_ns += k.threads * elapsed;
    t->compute_ns += HY_MIN(k.compute_ns, k.threads * elapsed);
    t->dram_ns += elapsed * (dram / placed);
    t->pm_ns += elapsed * (pm / placed);
    t->last_placed = placed / dram;
    t->last_pm = pm / dram;
}

void tally_add(struct tally *t, const struct machine_figures *f, const struct window *w)
{
    t->windows++;
    t->have |= w->have;
    for (int i = 0; i < WINDOW_FIELD_COUNT; i++)
        if (tally_adds_up((enum window_field)i) && window_has(w, (enum window_field)i))
            t->sum[i] += w->value[i];
    predict(t, f, w);
}

void tally_merge(struct tally *t, const struct tally *more)
{
    t->windows += more->windows;
    t->have |= more->have;
    for (int i = 0; i < WINDOW_FIELD_COUNT; i++)
        t->sum[i] += more->sum[i];
    t->judged += more->judged;
    t->dram_ns += more->dram_ns;
    t->placed_ns += more->placed_ns;
    t->pm_ns += more->pm_ns;
    t->busy_ns += more->busy_ns;
    t->compute_ns += more->compute_ns;
    t->service_ns += more->service_ns;
    if (more->judged > 0) {
        t->last_placed = more->last_placed;
        t->last_pm = more->last_pm;
    }
}
