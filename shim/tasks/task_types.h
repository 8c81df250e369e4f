/* SPDX-License-Identifier: BSD-2-Clause
 * Types of tasks: the function, and the sizes of the data that its dependences name, to a page
 * (paper 003, III.B). What is known of each, and whether its data shall be staged at all. All by
 * the pages' thread. */
#ifndef HYBRID_TASKS_TASK_TYPES_H
#define HYBRID_TASKS_TASK_TYPES_H

#include "settings/rules/profile.h"
#include "tasks/rules/shadow.h"
#include "tasks/rules/task_account.h"
#include "tasks/rules/task_fit.h"
#include "tasks/rules/task_verdict.h"

#define TYPES_MOST 64u
#define TYPE_NONE  TYPES_MOST

struct task_type {
    uint16_t function;
    uint8_t needs;
    uint32_t pages[SHADOW_NEEDS], all_pages;
    uint64_t ran; /* instances that ended */
    double uses;  /* of its data by known tasks, at most */
    struct task_fit fit;
    struct task_account account;
    struct task_verdict verdict;
};

struct task_types { /* zeros at first */
    unsigned n;
    bool allowed; /* data were staged, when last asked */
    struct task_type type[TYPES_MOST];
};

/* Its number, a new one if need be, of which the profile may know; TYPE_NONE: too many. */
unsigned types_of(struct task_types *t, unsigned function, const uint32_t *pages, unsigned needs);
/* Nothing that a look at tasks of this function could tell would be acted on. */
bool types_hopeless(const struct task_types *t, unsigned function, double slowdown, double move_ns);
/* May data be staged, by what that has brought all types (rules/task_account.h)? */
bool types_allow(struct task_types *t);
/* What a later run may know of them: PROFILE_MAX_TASKS at most; how many. */
unsigned types_tell(const struct task_types *t, struct profile_task *ret);
/* For the report, the first `cap`; how many of all are given up. */
struct staging_type;
unsigned types_view(const struct task_types *t, struct staging_type *ret, unsigned cap);

#endif
