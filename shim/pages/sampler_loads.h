/* SPDX-License-Identifier: BSD-2-Clause
 * What the source of reads by load samples (sampler_loads) does, for who wants to tell of it. */
#ifndef HYBRID_PAGES_SAMPLER_LOADS_H
#define HYBRID_PAGES_SAMPLER_LOADS_H

#include "pages/sampler_rings.h"

struct loads_view {
    const char *meaning; /* of the event in use; "" */
    uint64_t period;
    struct sample_counts counts;
    unsigned threads;   /* sampled in the last pass, */
    unsigned left_out;  /* and not, for want of memory or permission */
    unsigned given_way; /* times that others wanted the counters */
};
void sampler_loads_get(struct loads_view *ret);

/* For tests: this event (NULL: the machine's). */
void sampler_loads_use(const struct load_event *e);

#endif
