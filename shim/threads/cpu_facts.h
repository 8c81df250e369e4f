/* SPDX-License-Identifier: BSD-2-Clause
 * What sysfs says of the CPUs: hyperthreads, and how far the PM nodes are. */
#ifndef HYBRID_THREADS_CPU_FACTS_H
#define HYBRID_THREADS_CPU_FACTS_H

#include "threads/rules/cpus.h"

/* root: "/sys" outside tests. Fills facts[0..n-1], n at most HY_CPUS, and returns n; what
 * the kernel does not tell is 0. pm_nodes: bit i = node i, 0 when there are none. */
unsigned cpu_facts_read(const char *root, uint64_t pm_nodes, struct cpu_facts facts[HY_CPUS]);

#endif
