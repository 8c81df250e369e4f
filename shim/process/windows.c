/* SPDX-License-Identifier: BSD-2-Clause
 * Who wants windows of counts, and who is told what they say. */
#include "classifier.h"
#include "llc/share.h"
#include "migrator.h"
#include "pages/sampler_rings.h"
#include "place/planned.h"
#include "place/policy.h"
#include "process/process.h"
#include "record/record.h"
#include "report/observe.h"
#include "report/trace.h"
#include "sys/emulator.h"
#include "threadcap.h"
#include "threads/pacing.h"
#include "threads/search.h"

static bool want_counts(void)
{
    return threadsearch_possible() || pacing_possible() || llc_possible() ||
           migrate_wants_counters() || trace_wanted();
}

/* Load samples take one of the processor's counters. */
static bool take_a_counter(void)
{
    return !emulator_open() && (record_wants_sites() || migrate_wants_counters()) &&
           load_rings_take_counter();
}

static void here(struct window *w)
{
    struct threadcap_view cap;
    struct policy_view v;
    threadcap_get(&cap);
    policy_get(&v);
    window_set(w, WINDOW_threads, HY_MAX(cap.live, cap.cap ? cap.most : 0));
    window_set(w, WINDOW_cap, cap.cap);
    window_set(w, WINDOW_dram_bytes, v.used[HY_DRAM]);
    window_set(w, WINDOW_pm_bytes, v.used[HY_PM]);
}

/* What is allocated from here on, and what others are told, must not wait for a tick. */
static void decided(enum hy_class cls)
{
    policy_set_class(cls);
    observe_publish();
    policy_tick();
}

static void cache_window(const struct window *w, const struct classification *now)
{
    static struct migrate_view pages; /* the control thread's */

    migrate_get(&pages);
    const uint64_t *reuse = pages.last.stats.reuse;
    llc_window(w, now, reuse[REUSE_THRASHING], reuse[REUSE_THRASHING] + reuse[REUSE_FREQUENT]);
}

static void window(const struct window *w, const struct classification *now,
                   const struct machine_figures *f)
{
    record_window(w, now);
    planned_window(w);
    pacing_window(w, f);
    threadsearch_window(w, now, f);
    cache_window(w, now);
}

void windows_begin(void)
{
    static const struct classify_users users = {
        .want_all = record_wanted,
        .want_counts = want_counts,
        .take_a_counter = take_a_counter,
        .opened = record_begin,
        .tried = record_counts_open,
        .here = here,
        .decided = decided,
        .window = window,
    };
    classify_begin(&users);
}
