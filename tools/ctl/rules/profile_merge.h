/* SPDX-License-Identifier: BSD-2-Clause
 * One profile from several runs of a program, or from the ranks of one run. Pure.
 *
 * Sites are the same when all their frames are. Of a site: allocations, bytes, reads and
 * writes are means over the runs (a run without the site counts as none; a profile without any
 * site adds facts only), live bytes, largest
 * and smallest size are the extremes. Of a type of tasks: the count is a mean, times are those of
 * the run with more instances. Of the program: the class is that with the most weight
 * (confidence times the time counted), slowdown and the work are means with these weights,
 * write-intensive goes by weight, the footprint and the threads seen are the largest;
 * phases and behaviours are those of the run with the most weight. Facts that people give (options,
 * tiers, patterns, best threads) are the first profile's that has them. */
#ifndef HYBRID_TOOLS_CTL_RULES_PROFILE_MERGE_H
#define HYBRID_TOOLS_CTL_RULES_PROFILE_MERGE_H

#include "settings/rules/profile.h"

struct profile_merge {
    struct profile *into; /* with sites of its own */
    unsigned sites_cap;   /* room for them; those beyond it are counted as lost */
    double weight, class_weight[HY_CLASS_MAX], best_weight;
    double slowdown_weight, slowdown_sum, work_weight, exposure, foreseen, busy_threads;
    double writes_weight[2], confidence_sum, known_sum, mapped_sum, known_weight;
    uint32_t runs, site_runs;
    unsigned lost; /* sites without room */
};

/* `into->sites` is the only input. */
void profile_merge_begin(struct profile_merge *m, struct profile *into, unsigned sites_cap);
/* What does not fit together is told, and the first profile's word counts. -EXDEV: of another
 * program; nothing is taken. */
int profile_merge_add(struct profile_merge *m, const struct profile *p, const char *name,
                      hy_diag_fn diag, void *ctx);
void profile_merge_end(struct profile_merge *m);
/* Where nobody knows what is read and written, nothing tells the nth blocks of one place apart:
 * they become one site. */
void profile_fold_alike(struct profile *p);

#endif
