/* SPDX-License-Identifier: BSD-2-Clause
 * Sets of CPUs, of a size of our own: the C library's grows with the machine. */
#ifndef HYBRID_BASE_CPUSET_H
#define HYBRID_BASE_CPUSET_H

#include <string.h>

#include "base/types.h"

#define HY_CPUS 1024u

struct hy_cpus {
    uint64_t word[HY_CPUS / 64]; /* as the kernel's masks on a little-endian machine */
};

static inline bool cpus_has(const struct hy_cpus *s, unsigned cpu)
{
    return cpu < HY_CPUS && (s->word[cpu / 64] >> cpu % 64 & 1);
}

static inline void cpus_add(struct hy_cpus *s, unsigned cpu)
{
    if (cpu < HY_CPUS)
        s->word[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

static inline unsigned cpus_count(const struct hy_cpus *s)
{
    unsigned n = 0;
    for (size_t i = 0; i < HY_ARRAY_SIZE(s->word); i++)
        n += (unsigned)__builtin_popcountll(s->word[i]);
    return n;
}

static inline bool cpus_equal(const struct hy_cpus *a, const struct hy_cpus *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

#endif
