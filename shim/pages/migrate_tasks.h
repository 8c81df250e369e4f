/* SPDX-License-Identifier: BSD-2-Clause
 * The pages' thread serves tasks (tasks/staging.h) while it rests between looks: with its mover,
 * its account of DRAM and its rate. With HYBRID_TASKS=off it does nothing. */
#ifndef HYBRID_PAGES_MIGRATE_TASKS_H
#define HYBRID_PAGES_MIGRATE_TASKS_H

#include "pages/migrate_carry.h"

void migrate_tasks_begin(struct carrier *carrier);
void migrate_tasks_end(void);
/* Before a pass moves pages: what was staged for tasks is left to these. */
void migrate_tasks_pin(void);

#endif
