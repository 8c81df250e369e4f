/* SPDX-License-Identifier: BSD-2-Clause
 * How the DRAM for staging is shared among the tasks that run together (equations 1 and 2 of paper
 * 003: the pages add up to what there is, and the longest time shall be the shortest), and whether
 * a stage is worth it. Pure; times in ns. */
#ifndef HYBRID_TASKS_RULES_STAGE_PLAN_H
#define HYBRID_TASKS_RULES_STAGE_PLAN_H

#include "base/types.h"

#define STAGE_TASKS 48u /* a third may run */

struct stage_task {
    double pm_ns, saving; /* all its data on PM; less with all on DRAM */
    uint32_t pages;       /* of its data */
    uint32_t type;
};

/* ret_pages[i]: of task i's pages, so many shall be on DRAM; in all `room` at most. All of one
 * type: as many for each; else by dynamic programming, in STAGE_STEPS-ths of the room.
 * `many`: more tasks wait than run, so nobody waits for the longest. What counts is how many end,
 * and more do if some have all of their data than if each has a part (1/t is convex): the first
 * ones get all. */
#define STAGE_STEPS 64u
void stage_share(const struct stage_task *task, unsigned n, uint32_t room, bool many,
                 uint32_t *ret_pages);

struct stage_cost {
    double move_ns; /* a page, either way */
    bool evicts;    /* a page has to go for each that comes */
};
/* `pages` that are on PM come up, of a task's `of`; what they save in `uses` runs that are sure to
 * come is more than the copies cost. */
bool stage_pays(const struct stage_task *t, uint32_t pages, uint32_t of, double uses,
                const struct stage_cost *c);
double stage_ns(uint32_t pages, const struct stage_cost *c);
/* A stage ends `late_ns` after its task has begun, which takes `whole_ns`: so much of that use of
 * the data is left, 0 to 1. */
double stage_left(double late_ns, double whole_ns);
/* When the i-th next task (from 0) starts, from now: `workers` of them end in `mean_ns`. */
double stage_starts_ns(unsigned i, unsigned workers, double mean_ns);

#endif
