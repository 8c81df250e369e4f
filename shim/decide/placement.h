/* SPDX-License-Identifier: BSD-2-Clause
 * Who gets the DRAM: Algorithm 1 of papers/004 (DIGEST 004) over a snapshot of
 * all participants. Pure functions over plain structs. */
#ifndef HYBRID_DECIDE_PLACEMENT_H
#define HYBRID_DECIDE_PLACEMENT_H

#include "base/types.h"

#define PLACE_MAX_APPS 256

struct place_app {
    enum hy_class cls;
    uint64_t dram_bytes; /* held */
    uint64_t pm_bytes;
    uint64_t wish_bytes; /* DRAM that it would like and did not get */
};

struct place_machine {
    uint64_t dram_budget; /* shared by all, bytes */
    unsigned n_apps;
    struct place_app app[PLACE_MAX_APPS];
};

struct place_decision {
    enum hy_tier tier;
    uint64_t wish_bytes; /* DRAM to be wished free for this request (0: none) */
};

/* Algorithm 1 for a request of `bytes` by app[self]. free DRAM >= S: DRAM. Else
 * a bandwidth-sensitive program whose S fits what CPU-bound ones hold wishes
 * that much free (and gets PM until it is); latency-sensitive ones come after
 * bandwidth-sensitive ones and before CPU-bound ones (DESIGN 4). Else PM. */
struct place_decision placement_decide(const struct place_machine *m, unsigned self,
                                       uint64_t bytes);
/* DRAM bytes that app[self] is asked to give up now, the sum of others' wishes
 * shared among the CPU-bound holders in proportion to what they hold. */
uint64_t placement_asked_of(const struct place_machine *m, unsigned self);

#endif
