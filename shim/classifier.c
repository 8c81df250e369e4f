/* SPDX-License-Identifier: BSD-2-Clause
 * See classifier.h. Counters are opened when a class is needed and nobody has said it: not
 * for a passive process, nor where the user or the profile names the class, unless the
 * counts shall be recorded. */
#include "classifier.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "classify/figures.h"
#include "core/control.h"
#include "core/state.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/usage.h"

/* A class that is less sure than this moves no memory. */
#define SURE 0.3

static struct {
    enum { CLASSIFY_NOT_YET, CLASSIFY_ON, CLASSIFY_OFF } state;
    bool suspended; /* between two control threads */
    uint64_t last_ns, cost_ns;
    struct machine_figures figures;
    struct classifier classifier;
    enum hy_class published; /* what the policy goes by */
    struct counters_info counters;
    struct tally tally;
    struct window window; /* the last one, and its number */
    uint64_t windows;
} cl;

static const struct classify_users *users;

/* For classify_get, which the thread at exit calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(void *ctx, const char *message)
{
    (void)ctx;
    log_warn("%s", message);
}

static bool needed(void)
{
    bool asked = settings_class() == HY_CLASS_UNKNOWN && hy_config.set.policy == HY_POLICY_AUTO;

    return users->want_all() ||
           ((asked || users->want_counts()) && strcmp(hy_config.set.counters, "off") != 0);
}

/* For recorded accesses, or for pages that are read. */
static void begin(void)
{
    const struct hy_settings *s = &hy_config.set;
    struct class_rules rules = {s->class_slowdown, s->class_writes, s->class_threads};

    cl.state = CLASSIFY_OFF;
    if (!needed())
        return;
    cl.figures = *figures_here();
    classifier_init(&cl.classifier, &rules);
    counters_spare(users->take_a_counter());
    if (counters_open(s->counters, tell, NULL) < 0)
        return;
    counters_describe(&cl.counters);
    log_info("counters: %s%s%s%s; figures of %s", cl.counters.what, cl.counters.why[0] ? " (" : "",
             cl.counters.why, cl.counters.why[0] ? ")" : "", cl.figures.name);
    users->opened(cl.counters.what, &cl.figures, &rules);
    cl.last_ns = os_now_ns();
    cl.state = CLASSIFY_ON;
}

void classify_begin(const struct classify_users *u)
{
    users = u;
}

uint64_t classify_period_ns(void)
{
    uint64_t period = HY_MIN(hy_config.set.class_period, control_interval_ns());

    if (cl.state == CLASSIFY_OFF)
        return UINT64_MAX;
    /* Hints come slowly and mean little. */
    if (cl.state == CLASSIFY_ON && cl.counters.source == COUNTERS_KERNEL && !users->want_all())
        return HY_MAX(period, hy_config.set.interval);
    return period;
}

static void publish(enum hy_class before)
{
    const struct classification *c = &cl.classifier.now;

    if (c->cls != before)
        log_info("the program seems to be %s (confidence %.2f): slowdown on PM %.2f",
                 hy_class_name(c->cls), c->confidence, c->slowdown);
    if (settings_class() != HY_CLASS_UNKNOWN || c->weak || c->confidence < SURE ||
        c->cls == cl.published)
        return;
    cl.published = c->cls;
    users->decided(c->cls);
}

static void one_window(void)
{
    enum hy_class before = cl.classifier.now.cls;
    struct window w;

    if (counters_window(&w) < 0) {
        /* A recording has come to its end; what it said goes on. */
        cl.state = CLASSIFY_OFF;
        return;
    }
    if (cl.counters.source != COUNTERS_REPLAY)
        users->here(&w);
    pthread_mutex_lock(&lock);
    classifier_feed(&cl.classifier, &cl.figures, &w);
    tally_add(&cl.tally, &cl.figures, &w);
    cl.window = w;
    cl.windows++;
    counters_describe(&cl.counters);
    pthread_mutex_unlock(&lock);
    publish(before);
    users->window(&w, &cl.classifier.now, &cl.figures);
}

/* What counts from now on is another thread's to open. */
static bool reopen(void)
{
    bool open = counters_open(hy_config.set.counters, tell, NULL) == 0;
    pthread_mutex_lock(&lock);
    counters_describe(&cl.counters);
    pthread_mutex_unlock(&lock);
    cl.last_ns = os_now_ns();
    cl.suspended = false;
    return open;
}

void classify_pause(void)
{
    if (cl.state != CLASSIFY_ON || cl.counters.source < COUNTERS_HARDWARE)
        return;
    counters_close();
    cl.suspended = true;
}

void classify_tick(void)
{
    uint64_t cpu = os_thread_cpu_ns(), now = os_now_ns();

    if (cl.state == CLASSIFY_OFF || runtime_state() != HY_STEERING)
        return;
    if (cl.suspended && !reopen())
        cl.state = CLASSIFY_OFF;
    /* On the emulated machine each sleep is as long as a window in its time; of the real one
     * a tenth less will do. */
    if (cl.state == CLASSIFY_NOT_YET) {
        begin();
        users->tried();
    } else if (emulator_open() || now - cl.last_ns >= classify_period_ns() / 10 * 9) {
        cl.last_ns = now;
        one_window();
    }
    cl.cost_ns += os_thread_cpu_ns() - cpu;
}

void classify_get(struct classify_view *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (cl.counters.what[0] == '\0')
        return;
    pthread_mutex_lock(&lock);
    ret->found = cl.classifier.now;
    ret->counters = cl.counters;
    ret->tally = cl.tally;
    memcpy(ret->machine, cl.figures.name, sizeof(ret->machine));
    ret->cost_ns = cl.cost_ns;
    pthread_mutex_unlock(&lock);
}

bool classify_window(struct window *ret, uint64_t *ret_number)
{
    pthread_mutex_lock(&lock);
    bool any = cl.windows > 0;
    if (any) {
        *ret = cl.window;
        *ret_number = cl.windows;
    }
    pthread_mutex_unlock(&lock);
    return any;
}

/* The child has no thread that counts; if it gets one, it begins anew. */
void classify_child(void)
{
    counters_after_fork_child();
    memset(&cl, 0, sizeof(cl));
    cl.state = CLASSIFY_OFF;
    (void)pthread_mutex_init(&lock, NULL);
}
