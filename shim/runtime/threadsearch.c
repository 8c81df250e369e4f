/* SPDX-License-Identifier: BSD-2-Clause
 * See threadsearch.h. The rate of progress is the time that idle memories would need for the
 * lines served, each at its medium's bandwidth, in a second: work that spinning at a barrier does
 * not add to (it hits the cache), as instructions would, and that is the same for each
 * round of a program however many threads do it. */
#include "runtime/threadsearch.h"

#include <pthread.h>
#include <string.h>

#include "decide/threads.h"
#include "runtime/internal.h"
#include "runtime/threadcap.h"
#include "sys/log.h"
#include "sys/os.h"

/* Windows in which the threads move to other CPUs, which do not count. */
#define SETTLE 1u
/* Fewer threads than that run at a time: there is nothing to be gained. */
#define RUNNING 1.5
#define TRIES   16u /* as many as struct threadsearch_view has room for */

static struct {
    bool on_pm, searching, begun;
    unsigned settle; /* windows still to skip */
    unsigned quiet;  /* and rates before the next search */
    struct threads_mean mean;
    double first_rate;
    struct threads_search search;
    struct threadsearch_view view;
} ts;

/* For threadsearch_get, which the thread at exit calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool threadsearch_possible(void)
{
    const struct hy_settings *s = &hy_config.set;
    enum hy_class cls = settings_class();

    return !s->threads.off && s->threads.count == 0 &&
           !(hy_config.have_profile && hy_config.profile.threads[HY_PM]) &&
           s->policy != HY_POLICY_OFF && s->policy != HY_POLICY_DRAM &&
           (cls == HY_CLASS_BANDWIDTH || cls == HY_CLASS_UNKNOWN);
}

static void note_try(unsigned threads, double rate)
{
    struct threadsearch_view *v = &ts.view;

    pthread_mutex_lock(&lock);
    if (v->tried == 0)
        ts.first_rate = rate;
    if (v->tried < TRIES) {
        v->count[v->tried] = (uint16_t)threads;
        v->permille[v->tried] = (uint32_t)(rate / ts.first_rate * 1000);
        v->tried++;
    }
    pthread_mutex_unlock(&lock);
}

static void note_begin(unsigned knee)
{
    pthread_mutex_lock(&lock);
    ts.view.searches++;
    ts.view.knee = knee;
    ts.view.tried = ts.view.chosen = 0;
    pthread_mutex_unlock(&lock);
    if (ts.search.max_rate > 0)
        note_try(ts.search.max, ts.search.max_rate);
    ts.settle = SETTLE;
}

static void note_rest(unsigned chosen)
{
    pthread_mutex_lock(&lock);
    ts.view.chosen = chosen;
    pthread_mutex_unlock(&lock);
    log_info("threads: %u of %u are as fast as any number on PM (%u tried, PM's bandwidth is for "
             "%u)",
             chosen, ts.search.max, ts.view.tried, ts.view.knee);
}

/* Not any more: the data have moved, or the program does something else. One that goes to and fro
 * between classes would be searched each time: as after a search, it is left alone for longer
 * each time. */
static void stop(void)
{
    if (ts.searching)
        ts.quiet = ts.search.rest;
    ts.searching = false;
    ts.mean = (struct threads_mean){0};
}

/* Threads of that work that fill the memory. */
static unsigned knee_of(const struct machine_figures *f, const struct work *k, unsigned most)
{
    struct work_time one = work_time(f, k, k->pm_reads, k->pm_writes, 1);
    double lines = k->reads + k->writes;

    if (one.service_ns <= 0 || one.threads_ns <= 0)
        return most;
    return threads_knee(lines / one.service_ns, lines / one.threads_ns, most);
}

/* Threads that can run at a time. */
static unsigned most_threads(void)
{
    struct hy_cpus base;
    if (!threadcap_base(&base))
        return 0;
    return HY_MIN(cpus_count(&base), runtime_program_threads());
}

/* `rate`: with all threads. */
static void begin(const struct machine_figures *f, const struct work *k, double rate)
{
    unsigned most = most_threads(), knee;

    if (most < 2 || k->threads < RUNNING)
        return;
    knee = knee_of(f, k, most);
    if (ts.begun)
        threads_search_again(&ts.search, knee, most, rate);
    else
        threads_search_begin(&ts.search, knee, most, rate);
    ts.begun = ts.searching = true;
    note_begin(knee);
}

static void measured(double rate)
{
    unsigned before = threads_search_count(&ts.search), next;
    bool rested = ts.search.resting;

    next = threads_search_rate(&ts.search, rate);
    if (!rested)
        note_try(before, rate);
    if (next != before)
        ts.settle = SETTLE;
    if (ts.search.resting && !rested)
        note_rest(next);
    else if (rested && !ts.search.resting)
        note_begin(ts.view.knee);
}

/* The time that the memories need for the lines of a window. */
static double work_served(const struct machine_figures *f, const struct work *k)
{
    return work_time(f, k, k->pm_reads, k->pm_writes, 1).service_ns;
}

void threadsearch_window(const struct window *w, const struct classification *c,
                         const struct machine_figures *f)
{
    enum hy_class cls = settings_class();
    struct work k;
    enum stall_known known;
    double rate;

    if (!threadsearch_possible() || c->weak || work_of_window(f, w, &k, &known) < 0)
        return;
    if (cls == HY_CLASS_UNKNOWN)
        cls = c->cls;
    if (!ts.on_pm || cls != HY_CLASS_BANDWIDTH) {
        stop();
        return;
    }
    /* More threads than when it began: another search, with all of them first. */
    if (ts.searching && most_threads() > ts.search.max) {
        ts.searching = false;
        ts.mean = (struct threads_mean){0};
        ts.settle = SETTLE;
    }
    if (ts.settle > 0)
        ts.settle--;
    else if (threads_mean_add(&ts.mean, work_served(f, &k), window_get(w, WINDOW_elapsed_ns),
                              &rate)) {
        if (ts.searching)
            measured(rate);
        else if (ts.quiet > 0)
            ts.quiet--;
        else
            begin(f, &k, rate);
    }
    threadcap_tick();
}

void threadsearch_on_pm(bool on_pm)
{
    ts.on_pm = on_pm;
    if (!on_pm)
        stop();
}

void threadsearch_counts(unsigned *ret_told, unsigned *ret_held)
{
    unsigned n = threads_search_count(&ts.search);

    *ret_told = *ret_held = 0;
    if (!ts.searching || n >= ts.search.max)
        return;
    *ret_held = n;
    if (ts.search.resting)
        *ret_told = n;
}

void threadsearch_get(struct threadsearch_view *ret)
{
    pthread_mutex_lock(&lock);
    *ret = ts.view;
    pthread_mutex_unlock(&lock);
}

void threadsearch_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    memset(&ts, 0, sizeof(ts));
}
