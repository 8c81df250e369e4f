/* SPDX-License-Identifier: BSD-2-Clause
 * See classify.h. Counters are opened when a class is needed and nobody has said it: not
 * for a passive process, nor where the user or the profile names the class, unless the
 * counts shall be recorded. */
#include "runtime/classify.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "decide/recording.h"
#include "runtime/internal.h"
#include "sys/emulator.h"
#include "sys/env.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/usage.h"

/* A class that is less sure than this moves no memory. */
#define SURE         0.3
#define RECORD_BYTES ((size_t)16 << 20) /* pages are taken as they fill */
#define EMU_PRESET   "HYBRID_EMU_PRESET"
#define PRESET       "pram" /* the emulated machine's own default */
#define TECHNOLOGY   "optane"

static struct {
    enum { CLASSIFY_NOT_YET, CLASSIFY_ON, CLASSIFY_OFF } state;
    uint64_t last_ns, cost_ns;
    struct machine_figures figures;
    struct classifier classifier;
    struct counters_info counters;
    char *record; /* text */
    size_t record_len;
    uint32_t recorded;
} cl;

/* For classify_get, which the thread at exit calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(void *ctx, const char *message)
{
    (void)ctx;
    log_warn("%s", message);
}

static void load_figures(void)
{
    const char *name = hy_config.set.machine;
    const void *text;
    size_t len;
    int e;

    if (strchr(name, '/')) {
        e = os_map_file_ro(name, FIGURES_MAX_BYTES, &text, &len);
        if (e == 0) {
            e = figures_parse(text, len, name, &cl.figures, tell, NULL);
            if (text)
                os_unmap((void *)(uintptr_t)text, len);
        } else {
            log_warn("HYBRID_MACHINE=%s cannot be read (%s)", name, os_error_name(e));
        }
        if (e == 0)
            return;
    } else if (strcmp(name, "auto") != 0) {
        if (figures_default(name, &cl.figures) == 0)
            return;
    }
    name = emulator_open() ? env_get(EMU_PRESET) : TECHNOLOGY;
    if (!name || figures_default(name, &cl.figures) < 0)
        (void)figures_default(PRESET, &cl.figures);
}

static bool recording(void)
{
    return strcmp(hy_config.set.record, "0") != 0;
}

static bool needed(void)
{
    bool asked = settings_class() == HY_CLASS_UNKNOWN && hy_config.set.policy == HY_POLICY_AUTO;

    return recording() || (asked && strcmp(hy_config.set.counters, "off") != 0);
}

static void begin(void)
{
    const struct hy_settings *s = &hy_config.set;
    struct class_rules rules = {s->class_slowdown, s->class_writes, s->class_threads};
    void *m;

    cl.state = CLASSIFY_OFF;
    if (!needed())
        return;
    load_figures();
    classifier_init(&cl.classifier, &rules);
    if (counters_open(s->counters, tell, NULL) < 0)
        return;
    counters_describe(&cl.counters);
    log_info("counters: %s%s%s%s; figures of %s", cl.counters.what, cl.counters.why[0] ? " (" : "",
             cl.counters.why, cl.counters.why[0] ? ")" : "", cl.figures.name);
    if (recording() && os_map_anon(RECORD_BYTES, &m) == 0) {
        cl.record = m;
        cl.record_len = recording_write_header(cl.counters.what, cl.record, RECORDING_LINE_CAP);
    }
    cl.last_ns = os_now_ns();
    cl.state = CLASSIFY_ON;
}

uint64_t classify_period_ns(void)
{
    uint64_t period = hy_config.set.class_period;

    if (cl.state == CLASSIFY_OFF)
        return UINT64_MAX;
    /* Hints come slowly and mean little. */
    if (cl.state == CLASSIFY_ON && cl.counters.source == COUNTERS_KERNEL && !cl.record)
        return HY_MAX(period, hy_config.set.interval);
    return period;
}

static void write_record(void)
{
    char path[HY_PATH_MAX + 32];
    const char *spec = hy_config.set.record;
    int e;

    report_expand_name(strcmp(spec, "1") == 0 ? "hybrid-%p.rec" : spec, path, sizeof(path));
    e = os_write_file_atomic(path, cl.record, cl.record_len);
    if (e)
        log_warn("HYBRID_RECORD=%s cannot be written (%s)", path, os_error_name(e));
}

/* After 16, 32, 64 ... windows the file is written: somebody may kill us. */
static void record(const struct window *w)
{
    if (!cl.record || RECORD_BYTES - cl.record_len < RECORDING_LINE_CAP)
        return;
    cl.record_len += recording_write_window(w, cl.record + cl.record_len, RECORDING_LINE_CAP);
    cl.recorded++;
    if (cl.recorded >= 16 && (cl.recorded & (cl.recorded - 1)) == 0)
        write_record();
    if (RECORD_BYTES - cl.record_len < RECORDING_LINE_CAP)
        log_warn("HYBRID_RECORD: the recording is full after %u windows", cl.recorded);
}

static void publish(enum hy_class before)
{
    const struct classification *c = &cl.classifier.now;

    if (c->cls != before)
        log_info("the program seems to be %s (confidence %.2f): slowdown on PM %.2f",
                 hy_class_name(c->cls), c->confidence, c->slowdown);
    if (settings_class() == HY_CLASS_UNKNOWN && !c->weak && c->confidence >= SURE)
        policy_set_class(c->cls);
}

static void one_window(void)
{
    enum hy_class before = cl.classifier.now.cls;
    struct policy_view v;
    struct window w;

    if (counters_window(&w) < 0) {
        /* A recording has come to its end; what it said goes on. */
        cl.state = CLASSIFY_OFF;
        return;
    }
    policy_get(&v);
    if (cl.counters.source != COUNTERS_REPLAY) {
        window_set(&w, WINDOW_threads, os_thread_count() - 1);
        window_set(&w, WINDOW_dram_bytes, v.used[HY_DRAM]);
        window_set(&w, WINDOW_pm_bytes, v.used[HY_PM]);
    }
    record(&w);
    pthread_mutex_lock(&lock);
    classifier_feed(&cl.classifier, &cl.figures, &w);
    counters_describe(&cl.counters);
    pthread_mutex_unlock(&lock);
    publish(before);
}

void classify_tick(void)
{
    uint64_t cpu = os_thread_cpu_ns(), now = os_now_ns();

    if (cl.state == CLASSIFY_OFF || runtime_state() != HY_STEERING)
        return;
    /* On the emulated machine each sleep is as long as a window in its time; of the real one
     * a tenth less will do. */
    if (cl.state == CLASSIFY_NOT_YET)
        begin();
    else if (emulator_open() || now - cl.last_ns >= classify_period_ns() / 10 * 9) {
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
    memcpy(ret->machine, cl.figures.name, sizeof(ret->machine));
    ret->cost_ns = cl.cost_ns;
    ret->recorded = cl.recorded;
    pthread_mutex_unlock(&lock);
}

void classify_finish(void)
{
    if (cl.record && cl.recorded > 0)
        write_record();
}

/* The child has no thread that counts; if it gets one, it begins anew. */
void classify_child(void)
{
    counters_after_fork_child();
    memset(&cl, 0, sizeof(cl));
    cl.state = CLASSIFY_OFF;
    (void)pthread_mutex_init(&lock, NULL);
}
