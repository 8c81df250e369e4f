/* SPDX-License-Identifier: BSD-2-Clause
 * Questions about CPUs and affinity calls, answered for the emulated machine. Sizes and
 * errors are those of the kernel's calls. A library that interposes the same names and
 * calls the next one gets here.
 *
 * Threads that are not emulated (lost, ignored, of other processes) see the mask that
 * the program started with, and what is set for them has no effect. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "program/affinity.h"
#include "core/core.h"
#include "instrument/real.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static size_t set_bytes(void)
{
    return ((size_t)emu_cpu_count() + 63) / 64 * 8;
}

/* 0 or an errno; the size as for sched_getaffinity(2), of which the rest is cleared. */
static int get_mask(int tid, size_t bytes, cpu_set_t *ret)
{
    struct emu_cpuset s;

    if (bytes < set_bytes() || bytes % sizeof(unsigned long) != 0)
        return EINVAL;
    if (emu_affinity_get(tid, &s) < 0)
        s = *emu_affinity_at_start();
    memset(ret, 0, bytes);
    memcpy(ret, &s, bytes < sizeof(s) ? bytes : sizeof(s));
    return 0;
}

static void to_cpuset(size_t bytes, const cpu_set_t *set, struct emu_cpuset *ret)
{
    struct emu_cpuset all;

    emu_cpuset_fill(&all, emu_cpu_count());
    *ret = (struct emu_cpuset){0};
    memcpy(ret, set, bytes < sizeof(*ret) ? bytes : sizeof(*ret));
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        ret->bits[i] &= all.bits[i];
}

static int set_mask(int tid, size_t bytes, const cpu_set_t *set)
{
    struct emu_cpuset s;

    to_cpuset(bytes, set, &s);
    if (emu_cpuset_count(&s) == 0)
        return EINVAL;
    if (emu_affinity_set(tid, &s) == 0 && tid == 0)
        emu_cpu_leave_turn();
    return 0;
}

/* Does the kernel know this thread, and may we ask about it? */
static int known(pid_t tid)
{
    cpu_set_t s;
    REAL(int, sched_getaffinity, pid_t, size_t, cpu_set_t *);
    if (f(tid, sizeof(s), &s) == 0 || errno == EINVAL) /* more CPUs than the set has */
        return 0;
    return errno;
}

static int done(int e)
{
    if (e == 0)
        return 0;
    errno = e;
    return -1;
}

EXPORT int sched_getaffinity(pid_t tid, size_t bytes, cpu_set_t *set)
{
    int e = errno, r = tid == 0 ? 0 : known(tid);
    errno = e;
    return done(r ? r : get_mask(tid, bytes, set));
}

EXPORT int sched_setaffinity(pid_t tid, size_t bytes, const cpu_set_t *set)
{
    int e = errno, r = tid == 0 ? 0 : known(tid);
    errno = e;
    return done(r ? r : set_mask(tid, bytes, set));
}

/* The kernel's number of a thread: there is no call that tells it, but the number of
 * its CPU clock is made of it. 0: the caller; -1: no such thread. */
static int tid_of(pthread_t t)
{
    clockid_t clock;
    if (pthread_equal(t, pthread_self()))
        return 0;
    return pthread_getcpuclockid(t, &clock) == 0 ? ~(clock >> 3) : -1;
}

EXPORT int pthread_getaffinity_np(pthread_t t, size_t bytes, cpu_set_t *set)
{
    int tid = tid_of(t);
    /* libgomp asks in its constructor, just before it looks how its threads shall wait.
     * With more CPUs than are real they would spin for long, at no virtual time but with
     * the real CPUs that the others need. */
    if (!emu_core_running())
        (void)setenv("OMP_WAIT_POLICY", "passive", 0);
    return tid < 0 ? ESRCH : get_mask(tid, bytes, set);
}

EXPORT int pthread_setaffinity_np(pthread_t t, size_t bytes, const cpu_set_t *set)
{
    int tid = tid_of(t);
    return tid < 0 ? ESRCH : set_mask(tid, bytes, set);
}

EXPORT int sched_getcpu(void)
{
    return emu_cpu_current();
}

EXPORT int getcpu(unsigned *cpu, unsigned *node)
{
    if (cpu)
        *cpu = (unsigned)emu_cpu_current();
    if (node)
        *node = 0;
    return 0;
}

EXPORT int get_nprocs(void)
{
    return emu_cpu_count();
}

EXPORT int get_nprocs_conf(void)
{
    return emu_cpu_count();
}

EXPORT long sysconf(int name)
{
    REAL(long, sysconf, int);
    if (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF)
        return emu_cpu_count();
    return f(name);
}

EXPORT int sched_yield(void)
{
    REAL(int, sched_yield, void);
    emu_cpu_leave_turn();
    return f();
}

int emu_attr_split(const pthread_attr_t *a, pthread_attr_t *ret_plain, struct emu_cpuset *ret_set)
{
    cpu_set_t set;
    int detach, inherit, policy, scope;
    struct sched_param param;
    size_t guard, size;
    void *stack;

    /* All ones: never set. A set wider than this one cannot be asked for. */
    if (!a || pthread_attr_getaffinity_np(a, sizeof(set), &set) != 0 ||
        CPU_COUNT(&set) == CPU_SETSIZE)
        return 0;
    to_cpuset(sizeof(set), &set, ret_set);
    if (emu_cpuset_count(ret_set) == 0)
        return -EINVAL;
    if (pthread_attr_init(ret_plain) != 0)
        return -ENOMEM;
    if (pthread_attr_getdetachstate(a, &detach) == 0)
        (void)pthread_attr_setdetachstate(ret_plain, detach);
    if (pthread_attr_getguardsize(a, &guard) == 0)
        (void)pthread_attr_setguardsize(ret_plain, guard);
    /* glibc tells the lower end of a stack whose upper end was never set: 0. */
    if (pthread_attr_getstack(a, &stack, &size) == 0 && (uintptr_t)stack + size != 0)
        (void)pthread_attr_setstack(ret_plain, stack, size);
    else if (pthread_attr_getstacksize(a, &size) == 0)
        (void)pthread_attr_setstacksize(ret_plain, size);
    if (pthread_attr_getschedpolicy(a, &policy) == 0)
        (void)pthread_attr_setschedpolicy(ret_plain, policy);
    if (pthread_attr_getschedparam(a, &param) == 0)
        (void)pthread_attr_setschedparam(ret_plain, &param);
    if (pthread_attr_getinheritsched(a, &inherit) == 0)
        (void)pthread_attr_setinheritsched(ret_plain, inherit);
    if (pthread_attr_getscope(a, &scope) == 0)
        (void)pthread_attr_setscope(ret_plain, scope);
    return 1;
}
