/* SPDX-License-Identifier: BSD-2-Clause
 * The clock, and the emulated machine if the program runs on it; see measure.h. */
#include <time.h>

#include "tools/measure/measure.h"
#include "pmemu.h"

#pragma weak pmemu_vtime_ns
#pragma weak pmemu_set_tier

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

bool clock_is_virtual(void)
{
    return pmemu_vtime_ns && pmemu_set_tier;
}

int64_t clock_ns(void)
{
    return clock_is_virtual() ? pmemu_vtime_ns() : read_clock(CLOCK_MONOTONIC);
}

int64_t clock_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void emulated_tier(void *base, size_t bytes, int tier)
{
    if (clock_is_virtual())
        (void)pmemu_set_tier(base, bytes, tier);
}
