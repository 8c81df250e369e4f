/* SPDX-License-Identifier: BSD-2-Clause
 * What the source of reads by load samples (sampler_loads) does, for who wants to tell of it. */
#ifndef HYBRID_SERVICE_SAMPLER_LOADS_H
#define HYBRID_SERVICE_SAMPLER_LOADS_H

#include "decide/sample_ring.h"
#include "sys/loads.h"

/* One way to sample: a row of sampler_loads.def. */
struct load_event {
    struct os_load_event os;
    bool any;      /* sample_kind_of */
    uint32_t unit; /* sample_period */
    uint64_t period;
    const char *meaning;
};

/* Those that this machine's kernel tells of (root: "/sys" outside tests); how many. */
unsigned load_events(const char *root, struct load_event *ret, unsigned cap);

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
