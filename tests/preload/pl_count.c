/* SPDX-License-Identifier: BSD-2-Clause
 * A program that counts, or may not, beside the library's own counting:
 *   papi          PAPI of its own, opened before the library's can be
 *   papi-late     the same, after it
 *   perf          perf_event_open: its own CPU time, counted from before and after
 *   kill, refuse  a seccomp filter that kills, or refuses with EACCES, who opens an event
 *   late-kill     the same filter, when the library may count already
 *   none          nothing of the kind
 * Holds 24 MiB meanwhile and prints what must be the same with and without the library.
 * PL_SETTLE_MS: how long the library gets each time (200; windows are of 10 ms). */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../filter.h"

#define BLOCKS 24
#define BLOCK  ((size_t)1 << 20)
#define PAPI_7 (7 << 24)
#define SKIP   77

static unsigned char *block[BLOCKS];
static unsigned settle_ms = 200;

static void hold(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BLOCK);
        memset(block[i], i + 1, BLOCK);
    }
}

static int intact(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (size_t k = 0; k < BLOCK; k += 511)
            if (block[i][k] != i + 1)
                return 0;
    return 1;
}

/* Busy, and long enough for the library to begin and to take windows. */
static uint64_t work(unsigned ms)
{
    struct timespec a, b;
    uint64_t x = 1;

    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        for (int i = 0; i < 100000; i++)
            x = x * 6364136223846793005u + 1;
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < (long)ms);
    return x;
}

static int use_papi(void)
{
    void *h = dlopen("libpapi.so.7.0", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(int), (*create)(int *), (*destroy)(int *);
    long long (*real_usec)(void);
    int set = -1;

    if (!h)
        return SKIP;
    init = (int (*)(int))dlsym(h, "PAPI_library_init");
    create = (int (*)(int *))dlsym(h, "PAPI_create_eventset");
    destroy = (int (*)(int *))dlsym(h, "PAPI_destroy_eventset");
    real_usec = (long long (*)(void))dlsym(h, "PAPI_get_real_usec");
    if (!init || !create || !destroy || !real_usec)
        return SKIP;
    printf("PAPI %s\n", init(PAPI_7) == PAPI_7 ? "starts" : "does not start");
    printf("event set: %d\n", create(&set));
    long long before = real_usec();
    work(settle_ms);
    printf("its clock %s\n", real_usec() > before ? "goes" : "stands");
    printf("end: %d\n", destroy(&set));
    return 0;
}

static int open_event(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1};

    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void say_event(const char *which, int fd)
{
    uint64_t ns = 0;

    if (fd < 0)
        printf("%s: errno %d\n", which, errno);
    else
        printf("%s: %s\n", which,
               read(fd, &ns, sizeof(ns)) == sizeof(ns) && ns > 0 ? "counts" : "0");
}

static int use_perf(void)
{
    int first = open_event(), second;

    work(settle_ms);
    second = open_event();
    work(10);
    say_event("before", first);
    say_event("after", second);
    return 0;
}

static void *no_work(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *how = argc > 1 ? argv[1] : "none";
    const char *ms = getenv("PL_SETTLE_MS");
    int r = 0;

    /* Under a filter from before exec: a thread shows that threads are let, and then ours begins.
     */
    for (int i = 0; i < 3 && getenv("PL_THREADS"); i++)
        if (pthread_create(&thread, NULL, no_work, NULL) == 0)
            pthread_join(thread, NULL);
    if (ms)
        settle_ms = (unsigned)atoi(ms);

    if (strcmp(how, "kill") == 0)
        r = filter(SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS) ? 0 : SKIP;
    else if (strcmp(how, "refuse") == 0)
        r = filter(SYS_perf_event_open, SECCOMP_RET_ERRNO | EACCES) ? 0 : SKIP;
    else if (strcmp(how, "papi") == 0)
        r = use_papi();
    if (r != 0)
        return r;
    hold();
    work(settle_ms);
    if (strcmp(how, "papi-late") == 0)
        r = use_papi();
    else if (strcmp(how, "perf") == 0)
        r = use_perf();
    else if (strcmp(how, "late-kill") == 0)
        r = filter(SYS_perf_event_open, SECCOMP_RET_KILL_PROCESS) ? 0 : SKIP;
    if (r != 0)
        return r;
    work(settle_ms);
    puts(intact() ? "intact" : "SPOILT");
    return 0;
}
