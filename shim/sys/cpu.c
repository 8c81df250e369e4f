/* SPDX-License-Identifier: BSD-2-Clause
 * Calls behind the hooks about CPUs. See cpu.h. */
#include "sys/cpu.h"

#include <errno.h>
#include <time.h>

#include "sys/dl.h"

/* Idempotent: threads that come together store the same. */
#define RESOLVE(ops, field, name) ((ops).field = (__typeof__((ops).field))dl_next(name))

const struct cpu_ops *next_cpu(void)
{
    static struct cpu_ops ops;
    static bool calls_found;
    if (!__atomic_load_n(&calls_found, __ATOMIC_ACQUIRE)) {
        RESOLVE(ops, get, "sched_getaffinity");
        RESOLVE(ops, set, "sched_setaffinity");
        RESOLVE(ops, thread_get, "pthread_getaffinity_np");
        RESOLVE(ops, thread_set, "pthread_setaffinity_np");
        RESOLVE(ops, sysconf, "sysconf");
        RESOLVE(ops, nprocs, "get_nprocs");
        __atomic_store_n(&calls_found, true, __ATOMIC_RELEASE);
    }
    return &ops;
}

int cpu_get(int tid, struct hy_cpus *ret)
{
    int saved = errno, r = 0;
    struct hy_cpus cpus = {{0}};
    if (next_cpu()->get(tid, sizeof(cpus), (cpu_set_t *)&cpus) < 0)
        r = -errno;
    else
        *ret = cpus;
    errno = saved;
    return r;
}

int cpu_set(int tid, const struct hy_cpus *cpus)
{
    int saved = errno;
    int r = next_cpu()->set(tid, sizeof(*cpus), (const cpu_set_t *)cpus) < 0 ? -errno : 0;
    errno = saved;
    return r;
}

int cpu_tid(pthread_t thread)
{
    clockid_t clock;
    if (pthread_equal(thread, pthread_self()))
        return 0;
    /* The number of a thread's CPU clock is made of it; there is no call that tells it. */
    return pthread_getcpuclockid(thread, &clock) == 0 ? ~(clock >> 3) : -1;
}
