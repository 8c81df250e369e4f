/* SPDX-License-Identifier: BSD-2-Clause
 * Equal parts of the DRAM that all share: what a program can lose to nobody by what others tell.
 * Pure, and the same for whoever finds it from the same snapshot.
 *
 * What is equal is the part of a group: a program with twenty workers, or a build with many
 * compilers, is one. Who has less data than its part leaves the rest to the others (max-min
 * fairness), so that many small programs take no more than they can fill. Whatever somebody tells
 * of its data, no other group's part is below the budget by the number of groups. */
#ifndef HYBRID_PLACE_RULES_PARTS_H
#define HYBRID_PLACE_RULES_PARTS_H

#include "base/types.h"

#define PARTS_MAX 256u

struct part_party {
    int32_t group;  /* 0: it is by itself */
    uint64_t bytes; /* of all its data */
};

/* ret[i]: the part of p[i]; a group's is divided in the same way among its members. `n`: at most
 * PARTS_MAX. */
void parts_find(uint64_t budget, const struct part_party *p, unsigned n, uint64_t *ret);

#endif
