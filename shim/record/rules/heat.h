/* SPDX-License-Identifier: BSD-2-Clause
 * Which parts of a site's large blocks are used more than others: lines by offset, relative to the
 * block's size. Samples scatter, so parts that differ by no more than that are alike, and of larger
 * differences what scatter explains is left out. Pure. */
#ifndef HYBRID_RECORD_RULES_HEAT_H
#define HYBRID_RECORD_RULES_HEAT_H

#include "record/rules/access_scale.h"
#include "settings/rules/profile.h"

/* Smaller blocks have too few pages to tell their parts apart. */
#define HEAT_LEAST ((size_t)128 * HY_KIB)

struct heat {
    float lines[ACCESS_KINDS][PROFILE_BINS];
    double squares[ACCESS_KINDS]; /* of what each sample stands for */
    double found, missed;         /* lines of both kinds */
};

void heat_add(struct heat *h, size_t offset, size_t block, const double lines[ACCESS_KINDS]);
/* The block is gone: where in it this was is not known. */
void heat_miss(struct heat *h, const double lines[ACCESS_KINDS]);
/* With what a line costs on PM. False: all parts are alike, as far as is known: what is used last,
 * before a block is freed, is missed most, so little may be. */
bool heat_get(const struct heat *h, const double cost[ACCESS_KINDS], uint16_t ret[PROFILE_BINS]);

#endif
