/* SPDX-License-Identifier: BSD-2-Clause
 * What staging has brought all tasks, whether data came for them or not: instances that ran while
 * data came and went are set against those of their type that ran in quiet. So it shows what one
 * task's own time does not: a memory that is relieved for all, and tasks whose data had to go.
 * Staging ends when that has lost more than TASK_LOSS of the time of all tasks, and goes on when a
 * longer run can bear it. While it may have, by two standard errors, times with and without stages
 * take turns, so that both become known. Beyond TASK_LOSS can only be what the tasks lose that run
 * when it ends, and what times of a type say wrongly of each other. Pure; ns. */
#ifndef HYBRID_TASKS_RULES_TASK_ACCOUNT_H
#define HYBRID_TASKS_RULES_TASK_ACCOUNT_H

#include "base/types.h"

#define TASK_LOSS     0.005 /* of the 0.01 in all: some tasks run on when it ends */
#define ACCOUNT_LEAST 3u    /* instances in quiet that are enough to judge by */
#define ACCOUNT_QUIET 256u  /* of them that it remembers: what they take changes as pages move */
#define ACCOUNT_MOST  1024u /* instances of all that it remembers */

struct account_kind { /* zeros at first */
    double quiet, quiet_t, quiet_tt;
    double n, t; /* while data came and went */
    double all;  /* time of all instances */
};
/* Of a type: instances whose data would mostly be on PM, or on DRAM, had nothing been moved for
 * tasks; the first data that a program touches are on DRAM. */
struct task_account {
    struct account_kind kind[HY_TIERS];
};

/* `share`: of its data on DRAM, had nothing been moved for tasks. */
void account_quiet(struct task_account *a, double share, double ns);
void account_staged(struct task_account *a, double share, double ns);
/* It can be told what such an instance takes in quiet. */
bool account_knows(const struct task_account *a, double share);

struct account_sum {     /* over types; zeros at first */
    double lost, doubt2; /* its variance */
    double judged, staged, all;
};
void account_add(struct account_sum *s, const struct task_account *a);
/* `now`: data may be staged now. What ran in quiet too rarely is believed to fare as the others do.
 */
bool account_allows(const struct account_sum *s, bool now);

#endif
