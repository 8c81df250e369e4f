/* SPDX-License-Identifier: BSD-2-Clause
 * Which blocks of a large footprint to look at in this pass (paper 002, section 7.4: 5 to 15%
 * at random cover all of it after several passes). A cycle takes every block once, in an
 * order of its own; so no block waits longer than two cycles. Pure, O(1) a block. */
#ifndef HYBRID_PAGES_RULES_COVERAGE_H
#define HYBRID_PAGES_RULES_COVERAGE_H

#include "base/types.h"

/* Up to so many blocks (64 MiB) are all looked at in every pass. */
#define COVERAGE_ALL 32u
/* Percent of a larger footprint. */
#define COVERAGE_MIN 5u
#define COVERAGE_MAX 15u

struct coverage {
    uint64_t random; /* state; any value */
    uint64_t blocks; /* of the cycle under way */
    uint64_t step, at, done;
};

static inline void coverage_init(struct coverage *c, uint64_t seed)
{
    *c = (struct coverage){.random = seed};
}

uint64_t random_next(uint64_t *state);

/* Blocks for one pass when each costs `block_ns` and a pass may cost `budget_ns`; 0 for none. */
uint64_t coverage_share(uint64_t blocks, uint64_t block_ns, uint64_t budget_ns);
/* The next block below `blocks`, which may change from call to call: new ones come with
 * the next cycle. `blocks` must not be 0. */
uint64_t coverage_next(struct coverage *c, uint64_t blocks);

#endif
