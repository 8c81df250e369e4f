/* SPDX-License-Identifier: BSD-2-Clause
 * See trace.h. */
#include "report/trace.h"

#include <pthread.h>
#include <string.h>

#include "base/guard.h"
#include "report/trace_lines.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/usage.h"

#define BUFFER_BYTES ((size_t)4 << 20) /* pages are taken as they fill */
#define SHARE        200               /* of the time that passes goes here, one part in so many */
#define SHARE_EMU    10                /* on the emulated machine, whose time stands still for it */
#define FLUSH_SHARE  1000
#define FLUSH_NS     1000000000ull
#define PATIENCE_NS  200000000ull
#define MOST_NEWS    8u /* lines that are not thinned must not fill the buffer */
#define NAME         "hybrid-%p.trace"

static char named[HY_PATH_MAX]; /* absolute, with its %p */

static struct {
    enum { TRACE_NOT_YET, TRACE_ON, TRACE_OFF } state;
    struct trace_text text;
    char path[HY_PATH_MAX + 32];
    bool special;            /* a FIFO, /dev/stderr: written to once, at the end */
    uint64_t start_ns;       /* of the clock in the trace */
    uint64_t due_ns;         /* real time of the next sample */
    uint64_t cost_ns;        /* CPU time spent here */
    uint64_t flush_ns;       /* real time of the next writing of the file */
    uint64_t passes;         /* of the page moves, that were written */
    unsigned warnings;       /* that were written */
    uint64_t source_windows; /* of counts, when their source was written */
    unsigned sources;        /* how often */
    int migration;           /* state that was written, + 1, and how often */
    unsigned migrations;
    struct observed now;
    struct sampler_bin bins[TRACE_BINS];
} tr;

/* trace_finish comes from the thread that ends the program. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool trace_wanted(void)
{
    return strcmp(hy_config.set.trace, "0") != 0;
}

void trace_name(void)
{
    const char *spec = hy_config.set.trace;

    if (!trace_wanted())
        return;
    int e = os_absolute_path(strcmp(spec, "1") == 0 ? NAME : spec, named, sizeof(named));
    if (e != 0)
        settings_cannot_write(OPT_TRACE, spec, e);
}

static void begin(void)
{
    void *m;

    tr.state = TRACE_OFF;
    if (!named[0] || os_map_anon(BUFFER_BYTES, &m) != 0)
        return;
    os_output_name(named, tr.path, sizeof(tr.path));
    tr.special = os_is_special_file(tr.path);
    trace_begin(&tr.text, m, BUFFER_BYTES);
    tr.start_ns = emulator_clock_ns();
    trace_run(&tr.text, tr.start_ns, emulator_open());
    tr.state = TRACE_ON;
}

static void flush(void)
{
    uint64_t begin_ns = os_now_ns();
    int e = os_write_file_atomic(tr.path, tr.text.text.buf, tr.text.text.len);

    if (e != 0) {
        settings_cannot_write(OPT_TRACE, tr.path, e);
        tr.state = TRACE_OFF;
    }
    uint64_t end_ns = os_now_ns();
    tr.flush_ns = end_ns + HY_MAX(FLUSH_NS, (end_ns - begin_ns) * FLUSH_SHARE);
}

/* What has changed since it was written. */
static void tell_news(uint64_t ns)
{
    const struct observed *o = &tr.now;
    const char *text;

    /* Their number of threads comes later: written again when windows double. */
    if (o->classify.counters.what[0] && tr.sources < MOST_NEWS &&
        (tr.sources == 0 || o->classify.tally.windows > 4 * tr.source_windows)) {
        trace_counters(&tr.text, &o->classify);
        tr.source_windows = o->classify.tally.windows;
        tr.sources++;
    }
    if (tr.migration != (int)o->migrate.state + 1 && tr.migrations < MOST_NEWS) {
        trace_migration(&tr.text, &o->migrate);
        tr.migration = (int)o->migrate.state + 1;
        tr.migrations++;
    }
    while ((text = log_warning(tr.warnings)) != NULL) {
        trace_warning(&tr.text, ns, text);
        tr.warnings++;
    }
}

static void sample(bool last)
{
    uint64_t ns = emulator_clock_ns() - tr.start_ns;
    uint64_t passes;

    observe(&tr.now);
    tell_news(ns);
    passes = tr.now.migrate.passes;
    if (passes != tr.passes && (trace_due(&tr.text, TRACE_PASS) || last)) {
        unsigned n = migrate_heat(tr.bins, TRACE_BINS);
        trace_pass(&tr.text, ns, &tr.now.migrate.last, tr.bins, n);
    }
    tr.passes = passes;
    if (trace_due(&tr.text, TRACE_TICK) || last)
        trace_sample(&tr.text, ns, tr.cost_ns, &tr.now);
    if (last)
        trace_end(&tr.text, ns);
}

void trace_tick(void)
{
    uint64_t cpu = os_thread_cpu_ns(), now = os_now_ns();

    if (tr.state == TRACE_OFF || now < tr.due_ns || runtime_state() != HY_STEERING)
        return;
    pthread_mutex_lock(&lock);
    if (tr.state == TRACE_NOT_YET)
        begin();
    if (tr.state == TRACE_ON) {
        sample(false);
        if (now >= tr.flush_ns && !tr.special)
            flush();
    }
    uint64_t cost = os_thread_cpu_ns() - cpu;
    tr.cost_ns += cost;
    tr.due_ns = now + cost * (emulator_open() ? SHARE_EMU : SHARE);
    pthread_mutex_unlock(&lock);
}

void trace_finish(void)
{
    if (!trace_wanted() || tr.state == TRACE_OFF) /* in this order: `tr`'s page stays untouched */
        return;
    hy_guard_enter();
    /* A control thread stopped in the middle keeps its lock: what it wrote before stays. */
    if (os_lock_within(&lock, PATIENCE_NS)) {
        if (tr.state == TRACE_NOT_YET && runtime_state() == HY_STEERING)
            begin();
        if (tr.state == TRACE_ON) {
            sample(true);
            flush();
        }
        tr.state = TRACE_OFF;
        pthread_mutex_unlock(&lock);
    }
    hy_guard_leave();
}

void trace_child(void)
{
    if (!trace_wanted())
        return;
    if (tr.text.text.buf)
        (void)os_unmap(tr.text.text.buf, BUFFER_BYTES);
    memset(&tr, 0, sizeof(tr));
    if (!strstr(named, "%p"))
        tr.state = TRACE_OFF;
    (void)pthread_mutex_init(&lock, NULL);
}
