/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <stdbool.h>
#include <stdint.h>

#include "pages/sampler.h"

static bool watching;

int watch_start(void *memory, size_t bytes)
{
    static const struct sampler_source *const sources[] = {&sampler_scan, &sampler_soft_dirty,
                                                           NULL};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    int e = sampler_open(sources, &p, 1);
    if (e == 0)
        e = sampler_add(memory, bytes, HY_DRAM, false);
    watching = e == 0;
    return e;
}

void watch_round(void)
{
    static unsigned round;
    struct pass_stats stats;
    if (!watching)
        return;
    if (round == 0)
        sampler_begin(UINT64_MAX);
    sampler_round(round);
    if (++round == HISTORY_ROUNDS) {
        sampler_end(&stats);
        round = 0;
    }
}

const char *watch_source(void)
{
    return watching ? sampler_source_name(true) : NULL;
}
