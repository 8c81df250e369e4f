/* SPDX-License-Identifier: BSD-2-Clause
 * Do moves of pages pay? By the windows of counts before and after them; where nobody counts, by
 * how many would have to be undone. And has the program turned to something else? All by the
 * pages' thread. */
#ifndef HYBRID_PAGES_MIGRATE_JUDGE_H
#define HYBRID_PAGES_MIGRATE_JUDGE_H

#include "pages/rules/pace.h"
#include "pages/rules/payoff.h"

struct migrate_judge {
    uint64_t window;                           /* number of the last one that was seen */
    struct payoff last;                        /* it alone, */
    struct payoff now;                         /* those that are not judged yet, */
    struct payoff before;                      /* those that were judged last */
    uint64_t moved_pages, moved_ns, regretted; /* not judged yet */
    unsigned unjudged;                         /* passes */
    uint64_t accesses[HY_TIERS];  /* accesses to pages of the trial, by where they went, */
    uint64_t accesses_ns;         /* in so much looking; 0: nobody counts them */
    double calm_share;            /* of lines from PM: the most of late; < 0: nobody counts */
    unsigned other;               /* windows in a row that had more of them */
    double least_wait, most_wait; /* for a line, of late; 0: not known */
    unsigned phases;              /* that have begun */
    uint64_t calm_wanted;         /* pages that would have come up when moves paused */
};

void judge_init(struct migrate_judge *j);
static inline bool judge_counts(const struct migrate_judge *j)
{
    return j->calm_share >= 0;
}
/* Take what the counters have; a new phase ends a pause and makes the interval short. */
void judge_gather(struct migrate_judge *j, struct pace *p);
enum verdict { VERDICT_NONE, VERDICT_GOOD, VERDICT_BAD };
/* After a look, before new moves: the verdict on those before, if it is time. */
enum verdict judge_pass(struct migrate_judge *j, struct pace *p);
/* Moves are waiting for their verdict. */
static inline bool judge_waits(const struct migrate_judge *j)
{
    return j->moved_pages > 0;
}
/* DRAM's bandwidth in use, in the last window; < 0: not known. */
double judge_dram_use(const struct migrate_judge *j);

#endif
