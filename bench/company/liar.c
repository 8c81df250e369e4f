/* SPDX-License-Identifier: BSD-2-Clause
 * A participant that lies:
 *     liar REGISTRY BUDGET WANTS
 * joins the registry and tells, until it is killed, that it is bound by bandwidth, a thousand times
 * slower without DRAM, has run for ever, moves pages for nothing, and wants so many bytes. It takes
 * none. */
#include <stdio.h>
#include <stdlib.h>

#include "place/registry.h"
#include "sys/os.h"

#define THOUSAND_TIMES 1000000u
#define EACH_NS        5000000u

int main(int argc, char **argv)
{
    struct registry *r;
    if (argc != 4)
        return 2;
    uint64_t budget = strtoull(argv[2], NULL, 10), wants = strtoull(argv[3], NULL, 10);
    if (registry_open(argv[1], budget, &r) != 0 || registry_join(r, HY_CLASS_BANDWIDTH) != 0)
        return 1;
    struct registry_published told = {.cls = HY_CLASS_BANDWIDTH,
                                      .threads = 8,
                                      .slowdown = THOUSAND_TIMES,
                                      .placed_slowdown = THOUSAND_TIMES,
                                      .pm_bytes = wants,
                                      .wish_bytes = wants,
                                      .writers = THOUSAND_TIMES,
                                      .curve_bytes = wants,
                                      .curve_takes = wants,
                                      .curve_now = THOUSAND_TIMES,
                                      .run_ns = INT64_MAX,
                                      .weight = 10000};
    for (unsigned k = 0; k < REGISTRY_CURVE; k++)
        told.time_at[k] = THOUSAND_TIMES - k;
    registry_publish(r, &told);
    (void)puts("joined");
    (void)fflush(stdout);
    for (;;) {
        registry_publish(r, &told);
        os_sleep_ns(EACH_NS);
    }
}
