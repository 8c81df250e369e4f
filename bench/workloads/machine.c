/* SPDX-License-Identifier: BSD-2-Clause
 * The emulated machine as a workload sees it. See machine.h. Never instrumented. */
#include "machine.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "pmemu.h"

/* A function of this name, or NULL: a static variable each, asked once. */
#define FOUND(name)                                                                                \
    static __typeof__(name) *f;                                                                    \
    static int asked;                                                                              \
    if (!asked) {                                                                                  \
        f = (__typeof__(name) *)dlsym(RTLD_DEFAULT, #name);                                        \
        asked = 1;                                                                                 \
    }

static struct {
    int64_t time_ns, count[PMEMU_EVENT_COUNT];
} begun, ended;

int64_t machine_time_ns(void)
{
    struct timespec t;
    FOUND(pmemu_vtime_ns)

    if (f)
        return f();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void machine_away(uint64_t key)
{
    FOUND(pmemu_away)
    if (f)
        f(key);
}

void machine_back(int64_t vtime_ns)
{
    FOUND(pmemu_back)
    if (f)
        f(vtime_ns);
}

void machine_release(uint64_t key, int64_t vtime_ns)
{
    FOUND(pmemu_release)
    if (f)
        f(key, vtime_ns);
}

void machine_ignore(void)
{
    FOUND(pmemu_ignore_thread)
    if (f)
        f();
}

/* False: nobody counts here. */
static int counts(int64_t *ret)
{
    FOUND(pmemu_event)

    for (int i = 0; f && i < PMEMU_EVENT_COUNT; i++)
        ret[i] = f(i);
    return f != NULL;
}

void machine_begin(void)
{
    (void)counts(begun.count);
    begun.time_ns = machine_time_ns();
}

void machine_end(void)
{
    ended.time_ns = machine_time_ns();
    (void)counts(ended.count);
}

static void __attribute__((format(printf, 4, 5)))
put(char *line, size_t size, int *n, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if ((size_t)*n < size)
        *n += vsnprintf(line + *n, size - (size_t)*n, format, ap);
    va_end(ap);
}

int machine_line(char *line, size_t size)
{
    static const char *const names[] = {
#define X(name, what) #name,
        PMEMU_EVENTS(X)
#undef X
    };
    const char *clock = dlsym(RTLD_DEFAULT, "pmemu_vtime_ns") ? "virtual" : "real";
    int64_t none[PMEMU_EVENT_COUNT];
    int n = 0;

    put(line, size, &n, "time clock=%s begin_ns=%" PRId64 " end_ns=%" PRId64 " work_ns=%" PRId64,
        clock, begun.time_ns, ended.time_ns, ended.time_ns - begun.time_ns);
    for (int i = 0; i < PMEMU_EVENT_COUNT && counts(none); i++)
        put(line, size, &n, " %s=%" PRId64, names[i], ended.count[i] - begun.count[i]);
    put(line, size, &n, "\n");
    return n;
}
