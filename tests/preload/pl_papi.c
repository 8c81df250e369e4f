/* SPDX-License-Identifier: BSD-2-Clause
 * A libpapi.so (tests/unit/classify/fake_papi.c) of a Skylake, for the processor of pl_pmu: which is told
 * what counters the events take. */
#include <string.h>

#include "tests/unit/classify/fake_papi.h"

extern struct fake_papi fake_papi;
void pmu_taken(int n) __attribute__((weak));

static unsigned started; /* bit i: event i */

static void on_start(int event)
{
    int n = 0;
    started |= 1u << event;
    for (int i = 0; i < FAKE_EVENTS; i++)
        n += (started >> i & 1) && strncmp(fake_papi.event[i].name, "PAPI_", 5) != 0;
    if (pmu_taken)
        pmu_taken(n);
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const name[] = {"PAPI_TOT_INS",
                                       "PAPI_TOT_CYC",
                                       "LONGEST_LAT_CACHE:MISS",
                                       "OFFCORE_RESPONSE_0:DMND_RFO:L3_MISS:SNP_ANY",
                                       "CYCLE_ACTIVITY:STALLS_L3_MISS",
                                       "L2_RQSTS:PF_MISS"};
    fake_papi.version = 7 << 24;
    fake_papi.counters = 11;
    fake_papi.on_start = on_start;
    for (int i = 0; i < 6; i++) {
        fake_papi.event[i].name = name[i];
        fake_papi.event[i].per_read = 1000000;
    }
}
