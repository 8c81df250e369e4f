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
    double mean_ns; /* of all tasks */
    struct staging_view view;
};

extern struct engine *hy_staging;

struct footprint {
    uint32_t pages[SHADOW_NEEDS], all, dram, staged;
    uint64_t changed_ns;
};

/* Read what tasks have told meanwhile; how many events. */
unsigned staging_drain(void);
struct footprint staging_footprint(const struct shadow_task *t);
/* These are the next tasks, in this order: whose data are whose. */
void staging_note_wanted(const uint64_t *ids, unsigned n);
/* DRAM for tasks: what is free, and what holds data that tasks have named. */
uint32_t staging_room(bool running);
/* Up to `pages` of the data of the task, the so-manieth of the next ones, come; false: it began, or
 * there is no more room. */
bool staging_bring(uint64_t id, unsigned number, uint32_t pages);

#endif
