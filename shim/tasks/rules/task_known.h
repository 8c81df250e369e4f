/* SPDX-License-Identifier: BSD-2-Clause
 * Types of tasks that an earlier run has left in a profile ([tasks] of hybrid-profile(5)): a type
 * is profiled once and known from then on (paper 003, III.B). Pure. */
#ifndef HYBRID_TASKS_RULES_TASK_KNOWN_H
#define HYBRID_TASKS_RULES_TASK_KNOWN_H

#include "settings/rules/profile.h"

/* A block begins elsewhere in a page from run to run, and parts of it within a run, so a whole page
 * more or less of each dependence makes no difference. */
bool task_as_large(uint32_t pages, uint32_t others);
/* The one of this function with as many data, NULL: none. */
const struct profile_task *task_known(const struct profile *p, const struct hy_frame *code,
                                      const uint32_t *pages, unsigned needs);

#endif
