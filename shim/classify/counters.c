/* SPDX-License-Identifier: BSD-2-Clause
 * Which source there is, and windows from it. See counters.h. */
#include "classify/counters.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "classify/counters_papi.h"
#include "classify/rules/recording.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/usage.h"

#define REPLAY     "replay:"
#define REPLAY_LEN (sizeof(REPLAY) - 1)

static struct {
    struct counters_info info;
    struct papi_values papi; /* at the end of the last window */
    struct os_usage usage;
    uint64_t now_ns, rss, own_cpu_ns;
    const void *text; /* of the recording */
    size_t text_len;
    struct recording recording;
} now;
static const char *papi_name;
static unsigned spare;

void counters_use_papi(const char *soname)
{
    papi_name = soname;
}

void counters_spare(bool one)
{
    spare = one;
}

static int __attribute__((format(printf, 2, 3))) why_not(int e, const char *fmt, ...)
{
    size_t at = strlen(now.info.why);
    va_list ap;
    if (at > 0)
        at += (size_t)snprintf(now.info.why + at, sizeof(now.info.why) - at, "; ");
    if (at >= sizeof(now.info.why))
        return e;
    va_start(ap, fmt);
    (void)vsnprintf(now.info.why + at, sizeof(now.info.why) - at, fmt, ap);
    va_end(ap);
    return e;
}

/* --- sources ------------------------------------------------------------------- */

static int open_software(void)
{
    char why[96];
    int r;
    if (!emulator_open()) /* a look-up that fails would allocate */
        return why_not(-ENODEV, "no emulated machine");
    r = papi_begin(papi_name, PAPI_SET_SOFTWARE, 0, why, sizeof(why));
    if (r != 0)
        return why_not(r, "%s", why);
    now.info.source = COUNTERS_SOFTWARE;
    (void)snprintf(now.info.what, sizeof(now.info.what),
                   "software events of the emulated machine (PAPI): %u", papi_get().events);
    return 0;
}

static int open_hardware(bool asked_for)
{
    char why[96];
    int r, seccomp = os_seccomp(), paranoid = 0;
    if (seccomp != 0)
        return why_not(-EACCES, seccomp > 0
                                    ? "a seccomp filter is in force, which may kill who counts"
                                    : "/proc does not tell whether counting would be punished");
    /* PAPI need not be loaded to learn this. */
    if (!asked_for && os_has_pmu() == 0)
        return why_not(-ENODEV,
                       "the kernel offers no counters of the processor: a virtual machine?");
    /* 3 and 4 are Debian's and others': nothing without privilege. Asking does no harm, but
     * is known to fail. */
    (void)os_perf_paranoid(&paranoid);
    r = papi_begin(papi_name, PAPI_SET_HARDWARE, spare, why, sizeof(why));
    if (r != 0)
        return paranoid > 2 ? why_not(r, "%s (kernel.perf_event_paranoid is %d)", why, paranoid)
                            : why_not(r, "%s", why);
    now.info.source = COUNTERS_HARDWARE;
    struct papi_open o = papi_get();
    (void)snprintf(now.info.what, sizeof(now.info.what),
                   "hardware events (PAPI): %u, from %u threads on%s%s", o.events, o.threads,
                   o.counted_pct < 100 ? ", in turns" : "",
                   o.spares ? "; one is left out for samples of loads" : "");
    return 0;
}

static int open_replay(const char *path, hy_diag_fn diag, void *ctx)
{
    int r = os_map_copy(path, RECORDING_MAX_BYTES, false, &now.text, &now.text_len);
    if (r < 0) {
        options_tell(diag, ctx, "recording %s cannot be read (%s)", path, os_error_name(r));
        return r;
    }
    r = recording_open(&now.recording, now.text, now.text_len, diag, ctx);
    if (r < 0)
        return r;
    now.info.source = COUNTERS_REPLAY;
    (void)snprintf(now.info.what, sizeof(now.info.what), "a recording: %.140s", path);
    return 0;
}

static void open_kernel(void)
{
    now.info.source = COUNTERS_KERNEL;
    (void)snprintf(now.info.what, sizeof(now.info.what),
                   "hints of the kernel: CPU time, page faults, growth");
}

/* What later windows are told from. */
static void take_marks(void)
{
    now.now_ns = os_now_ns();
    now.own_cpu_ns = os_thread_cpu_ns();
    now.rss = os_rss_bytes();
    (void)os_usage(&now.usage);
    if (now.info.source >= COUNTERS_HARDWARE && papi_values(&now.papi) < 0)
        memset(&now.papi, 0, sizeof(now.papi));
}

int counters_open(const char *spec, hy_diag_fn diag, void *ctx)
{
    bool any = strcmp(spec, "auto") == 0;
    int r = -ENODEV;
    counters_close();
    if (strcmp(spec, "off") == 0)
        return 0;
    if (strncmp(spec, REPLAY, REPLAY_LEN) == 0) {
        r = open_replay(spec + REPLAY_LEN, diag, ctx);
        if (r < 0)
            counters_close();
        return r == 0 ? 0 : -EINVAL;
    }
    if (any || strcmp(spec, "software") == 0)
        r = open_software();
    /* On the emulated machine the processor counts what that machine costs to emulate. */
    if (strcmp(spec, "hardware") == 0 || (r != 0 && any && !emulator_open()))
        r = open_hardware(!any);
    if (r != 0)
        open_kernel();
    take_marks();
    return 0;
}

void counters_close(void)
{
    if (now.info.source >= COUNTERS_HARDWARE)
        papi_end();
    (void)os_unmap(now.text, now.text_len);
    memset(&now, 0, sizeof(now));
}

void counters_after_fork_child(void)
{
    papi_child();
    now.info.source = COUNTERS_OFF;
    now.info.what[0] = '\0';
    (void)snprintf(now.info.why, sizeof(now.info.why), "the counters are the parent's");
}

void counters_describe(struct counters_info *ret)
{
    *ret = now.info;
    if (now.info.source == COUNTERS_OFF && ret->what[0] == '\0')
        (void)snprintf(ret->what, sizeof(ret->what), "none");
}

/* --- windows ------------------------------------------------------------------- */

/* The kernel's part: of the process' time without this thread's own. */
static void kernel_window(struct window *w)
{
    struct os_usage usage = now.usage;
    uint64_t t = os_now_ns(), own = os_thread_cpu_ns(), rss = os_rss_bytes(), busy;

    (void)os_usage(&usage);
    busy = usage.cpu_ns - now.usage.cpu_ns;
    window_set(w, WINDOW_elapsed_ns, t - now.now_ns);
    window_set(w, WINDOW_end_ns, t);
    window_set(w, WINDOW_busy_ns, busy - HY_MIN(busy, own - now.own_cpu_ns));
    window_set(w, WINDOW_faults, usage.faults - now.usage.faults);
    window_set(w, WINDOW_grown_bytes, rss > now.rss ? rss - now.rss : 0);
    now.usage = usage;
    now.now_ns = t;
    now.own_cpu_ns = own;
    now.rss = rss;
}

static bool has(const struct papi_values *c, enum papi_count what)
{
    return (c->have >> what & 1) != 0;
}

/* A field from one event, or from the sum of two. */
static void set_sum(struct window *w, enum window_field field, const struct papi_values *c,
                    enum papi_count a, enum papi_count b)
{
    if (has(c, a) && has(c, b))
        window_set(w, field, c->value[a] + (a != b ? c->value[b] : 0));
}

static void from_events(struct window *w, const struct papi_values *c)
{
    const uint64_t *v = c->value;
#define COPY(field, count) set_sum(w, WINDOW_##field, c, PAPI_COUNT_##count, PAPI_COUNT_##count)
    COPY(instructions, INSTRUCTIONS);
    COPY(cycles, CYCLES);
    COPY(reads, READS);
    COPY(reads_pm, READS_PM);
    COPY(writes, WRITES);
    COPY(writes_pm, WRITES_PM);
    COPY(foreseen, FORESEEN);
    COPY(stall_ns, STALL_NS);
    COPY(wait_ns, WAIT_NS);
    COPY(elapsed_ns, ELAPSED_NS);
#undef COPY
    set_sum(w, WINDOW_reads, c, PAPI_COUNT_READS_DRAM, PAPI_COUNT_READS_PM);
    set_sum(w, WINDOW_writes, c, PAPI_COUNT_WRITES_DRAM, PAPI_COUNT_WRITES_PM);
    if (has(c, PAPI_COUNT_COMPUTE_NS) && has(c, PAPI_COUNT_STALL_NS) && has(c, PAPI_COUNT_WAIT_NS))
        window_set(w, WINDOW_busy_ns,
                   v[PAPI_COUNT_COMPUTE_NS] + v[PAPI_COUNT_STALL_NS] + v[PAPI_COUNT_WAIT_NS]);
    /* Who waits for a cache waits as long with the data elsewhere. */
    if (has(c, PAPI_COUNT_STALL_NS) && has(c, PAPI_COUNT_CACHE_NS))
        window_set(w, WINDOW_stall_ns,
                   v[PAPI_COUNT_STALL_NS] - HY_MIN(v[PAPI_COUNT_CACHE_NS], v[PAPI_COUNT_STALL_NS]));
    /* Cycles of stall in the same share of the time as of all cycles. */
    if (has(c, PAPI_COUNT_STALL_CYCLES) && has(c, PAPI_COUNT_CYCLES) && v[PAPI_COUNT_CYCLES] > 0) {
        double share = (double)v[PAPI_COUNT_STALL_CYCLES] / (double)v[PAPI_COUNT_CYCLES];
        window_set(w, WINDOW_stall_ns,
                   (uint64_t)(HY_MIN(share, 1.0) * window_get(w, WINDOW_busy_ns)));
    }
}

static void papi_window(struct window *w)
{
    struct papi_values values;
    struct papi_values c = {0};
    if (papi_values(&values) < 0) {
        papi_end();
        (void)why_not(0, "the program has shut PAPI down");
        open_kernel();
        return;
    }
    c.have = values.have & now.papi.have;
    for (int i = 0; i < PAPI_COUNT_COUNT; i++)
        c.value[i] = values.value[i] > now.papi.value[i] ? values.value[i] - now.papi.value[i] : 0;
    now.papi = values;
    from_events(w, &c);
    if (now.info.source == COUNTERS_SOFTWARE && emulator_open())
        window_set(w, WINDOW_end_ns, emulator_now_ns());
    unsigned counted_pct = papi_get().counted_pct;
    if (counted_pct < 100)
        window_set(w, WINDOW_counted_pct, counted_pct);
}

int counters_window(struct window *ret)
{
    struct window w = {0};
    int r;
    switch (now.info.source) {
    case COUNTERS_REPLAY:
        do
            r = recording_next(&now.recording, &w, NULL, NULL);
        while (r < 0); /* a wrong line costs that line */
        if (r == 0)
            return -ENODATA;
        break;
    case COUNTERS_OFF:
        return -ENODATA;
    case COUNTERS_HARDWARE:
    case COUNTERS_SOFTWARE:
        kernel_window(&w);
        papi_window(&w);
        break;
    case COUNTERS_KERNEL:
        kernel_window(&w);
        break;
    }
    *ret = w;
    return 0;
}
