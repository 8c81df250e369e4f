/* SPDX-License-Identifier: BSD-2-Clause
 * For the tests of the classifier: a machine, a program as its counters show it, the judgement. */
#ifndef HYBRID_TESTS_CLASSIFIER_UTIL_H
#define HYBRID_TESTS_CLASSIFIER_UTIL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "classify/rules/classes.h"
#include "classify/rules/recording.h"

static inline struct machine_figures machine(const char *name)
{
    struct machine_figures f;

    assert_int_equal(figures_default(name, &f), 0);
    return f;
}

static inline struct classification judge(const char *name, const struct window *w, int n)
{
    struct machine_figures f = machine(name);
    struct class_rules rules = class_rules_default();
    struct classifier c;

    classifier_init(&c, &rules);
    for (int i = 0; i < n; i++)
        classifier_feed(&c, &f, w);
    return c.now;
}

struct view {
    double pm, threads;
    bool idle_known; /* stall and waiting told apart, as the emulated machine does */
    double others;   /* the time of the waiting that others cause, as a share of all */
};

/* What the counters show of `k` run so. */
static inline struct window look(const struct machine_figures *f, const struct work *k,
                                 const struct view *v)
{
    struct work_time t = work_time(f, k, v->pm, v->pm, v->threads);
    double idle = t.threads_ns * v->threads - k->compute_ns;
    double elapsed = t.total_ns * (1 + v->others);
    double wait = elapsed * v->threads - k->compute_ns - idle;
    struct window w = {0};

    window_set(&w, WINDOW_elapsed_ns, (uint64_t)elapsed);
    window_set(&w, WINDOW_busy_ns, (uint64_t)(elapsed * v->threads));
    window_set(&w, WINDOW_reads, (uint64_t)k->reads);
    window_set(&w, WINDOW_writes, (uint64_t)k->writes);
    window_set(&w, WINDOW_reads_pm, (uint64_t)(k->reads * v->pm));
    window_set(&w, WINDOW_writes_pm, (uint64_t)(k->writes * v->pm));
    window_set(&w, WINDOW_foreseen, (uint64_t)(k->reads * k->foreseen));
    window_set(&w, WINDOW_stall_ns, (uint64_t)(v->idle_known ? idle : idle + wait));
    if (v->idle_known)
        window_set(&w, WINDOW_wait_ns, (uint64_t)wait);
    return w;
}

#endif
