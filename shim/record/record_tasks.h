/* SPDX-License-Identifier: BSD-2-Clause
 * Types of OpenMP tasks of a recorded run, with HYBRID_TASKS=on. Where pages are moved, the pages'
 * thread watches tasks anyway; else tasks are watched from here, and nothing is moved. */
#ifndef HYBRID_RECORD_RECORD_TASKS_H
#define HYBRID_RECORD_RECORD_TASKS_H

#include "settings/rules/profile.h"

/* At each turn of the control thread, and at the end of the program: by one thread at a time. */
void record_tasks_tick(void);
void record_tasks_get(struct profile *p);
void record_tasks_child(void);

#endif
