/* SPDX-License-Identifier: BSD-2-Clause
 * Windows of a recording that are alike, whenever they were, taken together as they come: a window
 * is a behaviour of its own until there are too many, and then the two become one that lose least
 * by it (Ward's criterion). Two are alike if the same sources are read and written at the same
 * rates, told as the part of the time for which PM would be busy with them. Pure. */
#ifndef HYBRID_RECORD_RULES_BEHAVIOURS_H
#define HYBRID_RECORD_RULES_BEHAVIOURS_H

#include "classify/rules/run_facts.h"
#include "record/rules/access_scale.h"

#define BEHAVIOURS (PROFILE_BEHAVIOURS + 1) /* and what is under way */

typedef double access_lines[ACCESS_KINDS];

struct behaviours {
    unsigned n;                      /* that are known; the next is under way: */
    access_lines *lines[BEHAVIOURS]; /* by source, in memory of the caller, zero at first */
    struct run_sum sum[BEHAVIOURS];  /* and its counts are added by run_sum_add */
    double apart[BEHAVIOURS]
                [BEHAVIOURS]; /* what is lost if they become one; the larger index first */
};

/* Counts and lines of what is under way have come, from so many sources: it is over. */
void behaviours_end(struct behaviours *b, const struct machine_figures *f, unsigned sources);

#endif
