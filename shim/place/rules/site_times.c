/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/rules/site_times.h"

#define WHOLE 1000 /* as a profile is written */

static unsigned moment_of(double share)
{
    return (unsigned)(HY_MIN(HY_MAX(share, 0.0), 1.0) * WHOLE + 0.5);
}

/* The moment at which most bytes come or go; `WHOLE`: there is none left. */
static unsigned largest(const uint64_t bytes[WHOLE])
{
    unsigned best = WHOLE;
    for (unsigned m = 1; m < WHOLE; m++)
        if (bytes[m] > (best < WHOLE ? bytes[best] : 0))
            best = m;
    return best;
}

void site_times_make(const struct profile *p, struct plan_times *ret)
{
    uint64_t bytes[WHOLE + 1] = {0};
    for (unsigned i = 0; i < p->n_sites; i++) {
        const struct profile_site *s = &p->sites[i];
        uint64_t most = s->live_bytes != 0 ? s->live_bytes : s->bytes;
        bytes[moment_of(s->from)] += most;
        bytes[moment_of(s->until)] += most;
    }
    ret->n = 1;
    ret->begin[0] = 0;
    for (unsigned m; ret->n < PLAN_TIMES && (m = largest(bytes)) < WHOLE; bytes[m] = 0) {
        unsigned at = ret->n++;
        for (; ret->begin[at - 1] > m; at--)
            ret->begin[at] = ret->begin[at - 1];
        ret->begin[at] = (uint16_t)m;
    }
}

unsigned site_times_part(const struct plan_times *times, double moment)
{
    unsigned m = moment_of(moment), part = times->n - 1;
    while (part > 0 && times->begin[part] > m)
        part--;
    return part;
}

uint32_t site_times_held(const struct plan_times *times, double from, double until)
{
    unsigned first = site_times_part(times, from), end = PLAN_TIMES;
    unsigned last = moment_of(until);
    if (last > 0 && last < WHOLE)
        for (end = first + 1; end < times->n && times->begin[end] < last; end++)
            ;
    end = end == times->n ? PLAN_TIMES : end; /* no later part is known */
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
