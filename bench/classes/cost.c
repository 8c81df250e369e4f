/* SPDX-License-Identifier: BSD-2-Clause
 * What a window costs the control thread: counts from a PAPI (argv[1], the tests' fake one, as
 * this machine may have no counters), class and predictions from them. For cost.py.
 *
 * usage: classes-cost FAKE-PAPI THREADS WINDOWS
 *
 * Prints CPU ns a window for each part, and what one read of an event of the kernel costs here:
 * a real PAPI makes one for each thread, the fake none. */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "classify/counters.h"
#include "classify/rules/classes.h"
#include "classify/rules/tally.h"
#include "tests/unit/classify/fake_papi.h"

#define MOST_THREADS 60 /* the fake has 64 sets */
#define READS        20000

/* Events of a Skylake; the counts of a window are those of a program that streams. */
static const char *const events[] = {
    "PAPI_TOT_INS",
    "PAPI_TOT_CYC",
    "LONGEST_LAT_CACHE:MISS",
    "OFFCORE_RESPONSE_0:DMND_RFO:L3_MISS:SNP_ANY",
    "CYCLE_ACTIVITY:STALLS_L3_MISS",
    "L2_RQSTS:PF_MISS",
};
#define N_EVENTS (sizeof(events) / sizeof(events[0]))

static int threads, windows;
static pthread_barrier_t gate;

static void *wait_there(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    return NULL;
}

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double read_ns(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    double begin = cpu_ns();
    uint64_t value;

    if (fd < 0)
        return -1;
    for (int i = 0; i < READS; i++)
        if (read(fd, &value, sizeof(value)) != sizeof(value))
            return -1;
    begin = (cpu_ns() - begin) / READS;
    close(fd);
    return begin;
}

/* As classifier.c does it. Parts of it in ret: reading, classifying. */
static int take_windows(double ret[2])
{
    struct class_rules rules = class_rules_default();
    struct machine_figures f;
    struct classifier c;
    struct tally tally = {0};
    struct window w;

    if (figures_default("optane", &f) < 0)
        return -1;
    classifier_init(&c, &rules);
    for (int i = 0; i < windows; i++) {
        double begin = cpu_ns(), middle;
        if (counters_window(&w) < 0 || !window_has(&w, WINDOW_reads))
            return -1;
        /* The fake's counts grow by the same in each window, whatever its length. */
        window_set(&w, WINDOW_elapsed_ns, 100000000);
        window_set(&w, WINDOW_busy_ns, 100000000 * (uint64_t)threads);
        window_set(&w, WINDOW_dram_bytes, 1 << 30);
        window_set(&w, WINDOW_pm_bytes, i % 2 ? 1 << 30 : 0); /* dear: on both media */
        middle = cpu_ns();
        classifier_feed(&c, &f, &w);
        tally_add(&tally, &f, &w);
        ret[0] += middle - begin;
        ret[1] += cpu_ns() - middle;
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread[MOST_THREADS];
    struct counters_info info;
    struct fake_papi *fake;
    double ns[2] = {0, 0};
    void *handle;

    threads = argc == 4 ? atoi(argv[2]) : 0;
    windows = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 1 || threads > MOST_THREADS || windows < 1) {
        fprintf(stderr, "usage: classes-cost FAKE-PAPI THREADS(1-%d) WINDOWS\n", MOST_THREADS);
        return 2;
    }
    handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    fake = handle ? dlsym(handle, "fake_papi") : NULL;
    if (!fake)
        return 2;
    fake->version = 7 << 24;
    fake->counters = 8;
    for (size_t i = 0; i < N_EVENTS; i++) {
        fake->event[i].name = events[i];
        fake->event[i].per_read = 1000000 * (long long)(N_EVENTS - i);
    }
    counters_use_papi(argv[1]);
    pthread_barrier_init(&gate, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, wait_there, NULL) != 0)
            return 1;
    pthread_barrier_wait(&gate);
    if (counters_open("hardware", NULL, NULL) != 0)
        return 1;
    counters_describe(&info);
    if (info.source != COUNTERS_HARDWARE) {
        printf("skip %s\n", info.why);
        return 77;
    }
    if (take_windows(ns) < 0)
        return 1;
    counters_close();
    pthread_barrier_wait(&gate);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    printf("counts_ns=%.0f class_ns=%.0f read_ns=%.0f\n", ns[0] / windows, ns[1] / windows,
           read_ns());
    return 0;
}
