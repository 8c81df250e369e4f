/* SPDX-License-Identifier: BSD-2-Clause
 * See search.h. The rate of progress is the time that idle memories would need for the
 * lines served, each at its medium's bandwidth, in a second: work that spinning at a barrier does
 * not add to (it hits the cache), as instructions would, and that is the same for each
 * round of a program however many threads do it. */
#include "threads/search.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "core/control.h"
#include "core/purse.h"
#include "settings/settings.h"
#include "sys/log.h"
#include "sys/os.h"
#include "threads/check.h"
#include "threads/confine.h"
#include "threads/pacing.h"
#include "threads/rules/threads.h"

/* Fewer threads than that run at a time: there is nothing to be gained. */
#define RUNNING 1.5
#define TRIES   16u /* as many as struct threadsearch_view has room for */

static struct {
    bool on_pm, searching, counted;
    double empty_ns; /* of the window before, if nothing was counted in it */
    struct threads_search search;
    struct threadsearch_view view;
} ts;

/* For threadsearch_get, which the thread at exit calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool search_possible(void)
{
    const struct hy_settings *s = &hy_config.set;

    return !s->threads.off && s->threads.count == 0 && !threadcheck_wanted();
}

bool threadsearch_possible(void)
{
    const struct hy_settings *s = &hy_config.set;
    enum hy_class cls = settings_class();

    if (s->policy == HY_POLICY_OFF || s->policy == HY_POLICY_DRAM)
        return false;
    return threadcheck_wanted() ||
           (search_possible() && (cls == HY_CLASS_BANDWIDTH || cls == HY_CLASS_UNKNOWN));
}

static void note_try(unsigned threads, double gain)
{
    struct threadsearch_view *v = &ts.view;

    pthread_mutex_lock(&lock);
    if (v->tried < TRIES) {
        v->count[v->tried] = (uint16_t)threads;
        v->permille[v->tried] = (uint32_t)(HY_MIN(gain, 1000.0) * 1000);
        v->tried++;
    }
    pthread_mutex_unlock(&lock);
}

/* The first time that fewer threads run. */
static void note_begin(unsigned knee)
{
    ts.counted = true;
    pthread_mutex_lock(&lock);
    ts.view.searches++;
    ts.view.knee = knee;
    ts.view.tried = ts.view.chosen = 0;
    pthread_mutex_unlock(&lock);
    note_try(ts.search.max, 1);
}

static void note_chosen(unsigned chosen)
{
    pthread_mutex_lock(&lock);
    ts.view.chosen = chosen;
    pthread_mutex_unlock(&lock);
}

static void note(enum threads_event e)
{
    const struct threads_search *s = &ts.search;

    if (e == THREADS_BEGUN)
        ts.counted = false;
    if (e == THREADS_TRIED || e == THREADS_FOUND || (e == THREADS_ENDED && ts.counted))
        note_try(s->tried, s->tried_gain);
    if (e == THREADS_FOUND) {
        note_chosen(s->best);
        log_info("threads: %u of %u are as fast as all on PM (%u tried, PM's bandwidth is for %u)",
                 s->best, s->max, ts.view.tried - 1, ts.view.knee);
    } else if (e == THREADS_ENDED && ts.counted) {
        note_chosen(s->max);
        log_info("threads: fewer than %u are slower on PM (%u: %.2f of the speed)", s->max,
                 s->tried, s->tried_gain);
    } else if (e == THREADS_GIVEN_UP) {
        note_chosen(s->max);
        log_info("threads: fewer than %u are slower by now", s->max);
    }
}

/* Not any more: the data have moved, or the program does something else. */
static void stop(void)
{
    threadcheck_stop();
    ts.empty_ns = 0;
    if (!ts.searching)
        return;
    threads_search_stop(&ts.search, purse_open(NULL));
    purse_close();
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

unsigned threadsearch_own_best(void)
{
    unsigned most = most_threads(),
             profiled = hy_config.have_profile ? hy_config.profile.threads[HY_PM] : 0;

    if (profiled && !threadcheck_given_up())
        return HY_MIN(profiled, most);
    if (ts.searching && ts.search.stage == THREADS_KEPT)
        return HY_MIN(ts.search.best, most);
    return most;
}

/* While the process is paced its number is another's business; what was found stays. */
static void halt(void)
{
    threadcheck_stop();
    thread_trial_stop(&ts.search.trial, purse_open(NULL));
    purse_close();
}

static void search(double elapsed_ns, const struct machine_figures *f, const struct work *k)
{
    struct work_model m = {f, k};
    unsigned most = most_threads();
    enum threads_event e;
    struct regret *purse;
    double run_ns;

    /* More threads than when it began: another search. */
    if (ts.searching && most > ts.search.max) {
        stop();
        ts.searching = false;
    }
    if (!ts.searching) {
        if (most < 2 || k->threads < RUNNING)
            return;
        threads_search_begin(&ts.search, most);
        ts.searching = true;
        ts.counted = false;
    }
    purse = purse_open(&run_ns);
    e = threads_search_window(&ts.search, purse, run_ns, work_served(&m), elapsed_ns, work_speed,
                              &m);
    purse_close();
    if (!ts.counted && threads_search_count(&ts.search) < ts.search.max)
        note_begin(knee_of(f, k, ts.search.max));
    note(e);
}

/* Counts come late at times: a window without time, or one without counts, goes with the next. Two
 * without counts are a pause. */
static bool counts_are_late(int work_known, double window_ns)
{
    bool late = window_ns <= 0 || (work_known == -EAGAIN && ts.empty_ns <= 0);

    ts.empty_ns = late ? ts.empty_ns + window_ns : 0;
    return late;
}

void threadsearch_window(const struct window *w, const struct classification *c,
                         const struct machine_figures *f)
{
    enum hy_class cls = settings_class();
    double window_ns = window_get(w, WINDOW_elapsed_ns), elapsed_ns = ts.empty_ns + window_ns;
    struct work k;
    enum stall_known known;
    int work_known;
    bool late;

    if (pacing_count()) {
        halt();
        threadcap_tick();
        return;
    }
    if (!threadsearch_possible())
        return;
    if (cls == HY_CLASS_UNKNOWN)
        cls = c->cls;
    work_known = work_of_window(f, w, &k, &known);
    late = counts_are_late(work_known, window_ns);
    if (c->weak || !ts.on_pm || (search_possible() && cls != HY_CLASS_BANDWIDTH) ||
        (work_known < 0 && !late))
        stop();
    else if (!late && search_possible())
        search(elapsed_ns, f, &k);
    else if (!late)
        threadcheck_window(work_served(&(struct work_model){f, &k}), elapsed_ns, most_threads());
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
    const struct threads_search *s = &ts.search;
    unsigned n = threads_search_count(s);

    *ret_told = *ret_held = 0;
    if (!ts.searching)
        return;
    if (n < s->max)
        *ret_held = n;
    if (s->stage == THREADS_KEPT)
        *ret_told = s->best;
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
    threadcheck_child();
    pacing_child();
    purse_child();
}
