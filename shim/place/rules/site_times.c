/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_times.h"

uint32_t site_plan_held(double from, double until)
{
    unsigned first = (unsigned)(HY_MIN(HY_MAX(from, 0.0), 1.0) * PLAN_TIMES);
    unsigned end = until > 0 && until < 1 ? (unsigned)(until * PLAN_TIMES) + 1 : PLAN_TIMES;

    first = HY_MIN(first, (unsigned)PLAN_TIMES - 1);
    end = HY_MAX(end, first + 1);
    return PLAN_ALWAYS << first & PLAN_ALWAYS >> (PLAN_TIMES - end);
}

uint64_t site_plan_least(const uint64_t free[PLAN_TIMES], uint32_t held)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t left = held ? held : PLAN_ALWAYS; left != 0; left &= left - 1)
        least = HY_MIN(least, free[__builtin_ctz(left)]);
    return least;
}

void site_plan_take(uint64_t free[PLAN_TIMES], uint32_t held, uint64_t bytes)
{
    for (uint32_t left = held ? held : PLAN_ALWAYS; left != 0; left &= left - 1)
        free[__builtin_ctz(left)] -= HY_MIN(free[__builtin_ctz(left)], bytes);
}
