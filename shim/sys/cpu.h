/* SPDX-License-Identifier: BSD-2-Clause
 * The calls about CPUs behind our hooks. Through the next library in the
 * chain, never by system call: an emulated machine has CPUs of its own. */
#ifndef HYBRID_SYS_CPU_H
#define HYBRID_SYS_CPU_H

#include <pthread.h>
#include <sched.h>

#include "base/cpuset.h"

struct cpu_ops {
    int (*get)(pid_t, size_t, cpu_set_t *);
    int (*set)(pid_t, size_t, const cpu_set_t *);
    int (*thread_get)(pthread_t, size_t, cpu_set_t *);
    int (*thread_set)(pthread_t, size_t, const cpu_set_t *);
    long (*sysconf)(int);
    int (*nprocs)(void);
};
const struct cpu_ops *next_cpu(void);

/* CPUs that a thread of this process may run on; tid 0: the calling one. 0 or -errno; errno
 * is kept. -EINVAL also on a machine with more than HY_CPUS. */
int cpu_get(int tid, struct hy_cpus *ret);
int cpu_set(int tid, const struct hy_cpus *cpus);
/* The kernel's number of a thread; 0: the calling one; -1: it has ended. */
int cpu_tid(pthread_t thread);

#endif
