/* SPDX-License-Identifier: BSD-2-Clause
 * What the tests of the sampler share: where their pages are, how it is opened, a whole pass. */
#ifndef HYBRID_TESTS_SAMPLER_UTIL_H
#define HYBRID_TESTS_SAMPLER_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pages/sampler.h"

#define MIB        (1ul << 20)
#define BASE       ((char *)0x10000000)
#define PAGE_OF(n) (0x10000000 / HY_PAGE + (n))

static inline int no_open(void)
{
    return -EPERM;
}

/* Passed over: it is not there, so nobody may close it either. */
static const struct sampler_source broken = {"broken", true, true, no_open};

static inline void open_with(const struct sampler_source *a, const struct sampler_source *b)
{
    const struct sampler_source *list[] = {&broken, a, b, NULL};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    assert_int_equal(sampler_open(list, &p, 1), 0);
}

static inline struct pass_stats pass(void)
{
    struct pass_stats stats;
    sampler_begin(UINT64_MAX);
    for (unsigned r = 0; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    sampler_end(&stats);
    return stats;
}

#endif
