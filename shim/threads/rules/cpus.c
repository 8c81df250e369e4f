/* SPDX-License-Identifier: BSD-2-Clause
 * The choice of CPUs. See cpus.h. */
#include "threads/rules/cpus.h"

/* What is less is taken first. */
static uint32_t rank(const struct hy_cpus *taken, const struct cpu_facts *f, unsigned from,
                     unsigned cpu)
{
    uint32_t r = (cpus_has(taken, cpu) ? (uint32_t)1 << 25 : 0) | (cpu < from);
    return f ? r | (uint32_t)f->sibling << 17 | (uint32_t)f->distance << 1 : r;
}

unsigned cpus_turn(const struct hy_cpus *allowed, uint32_t pid, unsigned count)
{
    unsigned n = cpus_count(allowed);
    uint64_t turn = n ? (uint64_t)pid * count % n : 0;
    for (unsigned cpu = 0; cpu < HY_CPUS; cpu++)
        if (cpus_has(allowed, cpu) && turn-- == 0)
            return cpu;
    return 0;
}

struct hy_cpus cpus_choose(const struct hy_cpus *allowed, const struct hy_cpus *taken,
                           const struct cpu_facts *facts, unsigned n_facts, unsigned from,
                           unsigned count)
{
    struct hy_cpus chosen = {{0}};

    /* Selection by passes: `count` is small, and this runs once in seconds. */
    for (unsigned left = HY_MAX(count, 1u); left > 0; left--) {
        uint32_t least = UINT32_MAX;
        unsigned best = HY_CPUS;
        for (unsigned cpu = 0; cpu < HY_CPUS; cpu++) {
            uint32_t r;
            if (!cpus_has(allowed, cpu) || cpus_has(&chosen, cpu))
                continue;
            r = rank(taken, facts && cpu < n_facts ? &facts[cpu] : NULL, from, cpu);
            if (r < least) {
                least = r;
                best = cpu;
            }
        }
        if (best == HY_CPUS)
            break;
        cpus_add(&chosen, best);
    }
    return chosen;
}
