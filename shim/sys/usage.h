/* SPDX-License-Identifier: BSD-2-Clause
 * What the kernel tells every process of itself without privilege, and whether it may be
 * asked for more. Results 0 or -errno; nothing allocates. */
#ifndef HYBRID_SYS_USAGE_H
#define HYBRID_SYS_USAGE_H

#include "base/types.h"

struct os_usage {
    uint64_t cpu_ns; /* of all threads, ended ones too */
    uint64_t faults;
};
int os_usage(struct os_usage *ret);
/* Of the calling thread. */
uint64_t os_thread_cpu_ns(void);
/* Threads of this process; how many there are (more than `cap` may be). -errno. */
int os_thread_ids(int32_t *ids, size_t cap);
/* Is the process under a seccomp filter, which may kill it for a call that it does not
 * expect? 1, 0, or -errno: nobody tells. */
int os_seccomp(void);
/* How many filters there are (Linux 5.9); -errno. They stay for ever and are inherited. */
int os_seccomp_filters(void);
/* These, as many, are known not to kill: 0 by os_seccomp while there are no others. */
void os_seccomp_trust(unsigned filters);
/* Is no filter in force here, or only such as are trusted? Without a descriptor, which os_seccomp
 * needs; how many they are is not looked at. */
bool os_filters_harmless(void);
/* Are the filters that this process was started under known to let threads be made? Those of the
 * container's first process are, as its runtime refuses and does not kill. Reads files. */
bool os_filters_let_threads(void);
/* Does the kernel offer the processor's counters? 1, 0, or -errno: /sys does not tell. */
int os_has_pmu(void);
/* General counters that the processor has for a thread; 0: it does not tell. */
unsigned os_pmu_counters(void);
/* Does the kernel's watchdog take the counter of cycles? */
bool os_nmi_watchdog(void);
/* kernel.perf_event_paranoid; -errno. */
int os_perf_paranoid(int *ret);
/* kernel.perf_event_mlock_kb: memory of a user for each CPU's samples. */
int os_perf_mlock_kb(int *ret);

#endif
