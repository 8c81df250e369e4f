/* SPDX-License-Identifier: BSD-2-Clause
 * Between the files of staging: staging.c has what tasks tell, the plan, and its life;
 * staging_moves.c where data are, and what comes and goes. */
#ifndef HYBRID_TASKS_STAGING_INTERNAL_H
#define HYBRID_TASKS_STAGING_INTERNAL_H

#include "tasks/events.h"
#include "tasks/objects.h"
#include "tasks/rules/stage_plan.h"
#include "tasks/staging.h"
#include "tasks/task_types.h"

struct engine {
    struct staging_host host;
    struct shadow shadow;
    struct objects objects;
    struct task_types types;
    struct task_event needs[TASK_NEEDS_MOST]; /* of the task that is being told of */
    struct task_event made;
    unsigned needs_left;
    unsigned workers; /* tasks that ran at a time, at most */
    uint64_t ended, hope_at;
    uint64_t moved_ns; /* when data came or went last */
    double mean_ns;    /* of all tasks */
    struct staging_view view;
};

extern struct engine *hy_staging;

struct footprint {
    uint32_t pages[SHADOW_NEEDS], all, dram, staged;
    int64_t more;
    bool touched; /* data are elsewhere than they would be without tasks */
    uint64_t changed_ns, carried_ns;
};

/* Read what tasks have told meanwhile; how many events. */
unsigned staging_drain(void);
struct footprint staging_footprint(const struct shadow_task *t);
/* Share of its data on DRAM, had nothing been moved for tasks. */
double staging_untouched(const struct footprint *f);
/* The next tasks in their order, *ret_waiting, then those that run, STAGE_TASKS at most; from now
 * on it is known whose data are whose. */
unsigned staging_next(uint64_t *ret_ids, unsigned *ret_waiting);
/* Whose data an object holds: of tasks that run, of the next ones from 1, of none of them. */
#define FOR_RUNNING 0u
#define FOR_NONE    0xffu
/* DRAM for tasks: what is free, and what holds data that tasks have named and that is for this one
 * of the next, for later ones, or for none. */
uint32_t staging_room(unsigned from);

struct stage {
    uint64_t id;
    unsigned number; /* of the next tasks, from 1; FOR_RUNNING */
    double uses;     /* of its data by tasks that have not begun, itself included */
    double whole_ns; /* that it takes with its data as they are */
    struct stage_task of;
    struct stage_cost cost;
};
/* What so many pages bring, if all goes as expected, is more than they cost. */
bool staging_pays(const struct stage *s, uint32_t pages);
/* Up to `pages` of its data come, as long as the rest pays and there is room. */
void staging_bring(const struct stage *s, uint32_t pages);

#endif
