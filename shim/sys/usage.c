/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/usage.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "sys/os.h"
#include "sys/raw.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

static uint64_t nanoseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

int os_usage(struct os_usage *ret)
{
    struct rusage r;
    struct timespec ts;
    long e = raw2(SYS_getrusage, RUSAGE_SELF, &r);
    if (e < 0)
        return (int)e;
    /* getrusage counts in ticks on some kernels. */
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0)
        ret->cpu_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    else
        ret->cpu_ns = nanoseconds(r.ru_utime) + nanoseconds(r.ru_stime);
    ret->faults = (uint64_t)r.ru_minflt + (uint64_t)r.ru_majflt;
    return 0;
}

uint64_t os_thread_cpu_ns(void)
{
    struct timespec ts;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct ids {
    int32_t *id;
    size_t cap, n;
};

static void note_id(void *ctx, const char *name)
{
    struct ids *ids = ctx;
    uint64_t id;
    if (raw_take_number(&name, &id) && ids->n++ < ids->cap)
        ids->id[ids->n - 1] = (int32_t)id;
}

int os_thread_ids(int32_t *id, size_t cap)
{
    struct ids ids = {id, cap, 0};
    int r = os_list_dir("/proc/self/task", note_id, &ids);
    return r < 0 ? r : (int)ids.n;
}

/* What is behind `key`, where a text begins so; else NULL. */
static const char *behind(const char *text, const char *key)
{
    while (*key != '\0' && *text == *key)
        text++, key++;
    return *key == '\0' ? text : NULL;
}

/* The number behind `key` at the start of a line. A thread of the program may ask for the first
 * one: no function that the loader would have to look up. */
static int wide_number_in(const char *path, const char *key, uint64_t *ret)
{
    char text[4096];
    size_t len;
    const char *line = text, *p;
    int r = os_read_file(path, text, sizeof(text), &len);
    /* A longer file: what was read of it will do. */
    if (r < 0 && r != -E2BIG)
        return r;
    text[sizeof(text) - 1] = '\0';
    while (!(p = behind(line, key))) {
        while (*line != '\0' && *line != '\n')
            line++;
        if (*line++ == '\0')
            return -ENODATA;
    }
    return raw_take_number(&p, ret) ? 0 : -ENODATA;
}

uint64_t os_peak_rss_bytes(void)
{
    uint64_t kib;
    return wide_number_in("/proc/self/status", "VmHWM:", &kib) == 0 ? kib << 10 : 0;
}

static int number_in(const char *path, const char *key, int *ret)
{
    uint64_t v;
    int r = wide_number_in(path, key, &v);
    if (r < 0)
        return r;
    *ret = (int)v;
    return 0;
}

static unsigned trusted;

void os_seccomp_trust(unsigned filters)
{
    trusted = filters;
}

int os_seccomp_filters(void)
{
    int filters, r = number_in("/proc/self/status", "Seccomp_filters:", &filters);
    return r < 0 ? r : filters;
}

int os_seccomp(void)
{
    int mode, r = number_in("/proc/self/status", "Seccomp:", &mode);
    if (r == 0 && mode == SECCOMP_MODE_FILTER && trusted > 0)
        return os_seccomp_filters() != (int)trusted;
    return r < 0 ? r : mode != 0;
}

bool os_filters_harmless(void)
{
    long mode = raw5(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0);
    return mode == 0 || (mode == SECCOMP_MODE_FILTER && trusted > 0);
}

bool os_filters_let_threads(void)
{
    int first, own = os_seccomp();
    if (own <= 0)
        return own == 0;
    own = os_seccomp_filters();
    /* Who is the first process itself may be in the jail of one that kills. */
    return own > 0 && raw0(SYS_getpid) != 1 &&
           number_in("/proc/1/status", "Seccomp_filters:", &first) == 0 && own == first;
}

/* "cpu" on x86 (cpu_core and cpu_atom on hybrids), "armv8_pmuv3_0" and the like on Arm. */
static void note_pmu(void *ctx, const char *name)
{
    if (strncmp(name, "cpu", 3) == 0 || strncmp(name, "armv", 4) == 0)
        *(int *)ctx = 1;
}

int os_has_pmu(void)
{
    int found = 0, r = os_list_dir("/sys/bus/event_source/devices", note_pmu, &found);
    return r < 0 ? r : found;
}

unsigned os_pmu_counters(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    /* Architectural performance monitoring: version, counters of each logical processor. */
    if (__get_cpuid(0xa, &a, &b, &c, &d) && (a & 0xff) > 0)
        return a >> 8 & 0xff;
#endif
    return 0;
}

bool os_nmi_watchdog(void)
{
    int on;
    return number_in("/proc/sys/kernel/nmi_watchdog", "", &on) == 0 && on > 0;
}

int os_perf_paranoid(int *ret)
{
    return number_in("/proc/sys/kernel/perf_event_paranoid", "", ret);
}

int os_perf_mlock_kb(int *ret)
{
    return number_in("/proc/sys/kernel/perf_event_mlock_kb", "", ret);
}
