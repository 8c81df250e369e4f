/* SPDX-License-Identifier: BSD-2-Clause
 * Which CPUs a program is confined to. Pure. */
#ifndef HYBRID_THREADS_RULES_CPUS_H
#define HYBRID_THREADS_RULES_CPUS_H

#include "base/cpuset.h"

/* What the machine says of one CPU. */
struct cpu_facts {
    uint16_t distance; /* from the PM nodes, ACPI's scale (10: the same node); 0: not told */
    uint8_t sibling;   /* 0: first of its core, 1: second hyperthread ... */
};

/* `count` of the CPUs in `allowed`, at least one if there is one: those that nobody has
 * `taken` first, then first hyperthreads, then those near the PM, then in order from `from`
 * on, beginning again at 0. So the choice for fewer is always a part of the choice for more.
 * `facts` by CPU, `n_facts` of them, may be NULL. */
struct hy_cpus cpus_choose(const struct hy_cpus *allowed, const struct hy_cpus *taken,
                           const struct cpu_facts *facts, unsigned n_facts, unsigned from,
                           unsigned count);

/* Where a process begins to choose, so that those that know nothing of each other yet
 * rarely choose the same: its number's turn in `allowed`. */
unsigned cpus_turn(const struct hy_cpus *allowed, uint32_t pid, unsigned count);

#endif
