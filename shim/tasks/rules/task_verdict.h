/* SPDX-License-Identifier: BSD-2-Clause
 * Whether staging has paid, and whether it ever can. What stages have cost is set against what the
 * tasks that ran on staged data have saved; three bad verdicts end it for a type. Pure; ns. */
#ifndef HYBRID_TASKS_RULES_TASK_VERDICT_H
#define HYBRID_TASKS_RULES_TASK_VERDICT_H

#include "tasks/rules/task_fit.h"

#define VERDICT_STAGES 16u     /* between two verdicts, at least, */
#define VERDICT_RAN    8u      /* and as many tasks that ran on what was staged; */
#define VERDICT_MOST   64u     /* but then one is due, though few or none did */
#define VERDICT_BAD    3u      /* in a row, and it is off */
#define VERDICT_TASKS  64u     /* seen before it is called hopeless */
#define TASK_TINY_NS   50000.0 /* watching a task takes about 0.4 us of its thread */

struct task_verdict {         /* zeros at first */
    double cost_ns, saved_ns; /* since the last verdict */
    unsigned stages, ran, bad;
    bool off;
};

/* Data of one task were staged. If a verdict is due, what the ones before have lost; 0: they have
 * paid, or it is not due. Tasks may be far longer than stages: it waits for them. */
double verdict_staged(struct task_verdict *v, double cost_ns);
/* A task ran on staged data. */
void verdict_ran(struct task_verdict *v, double saved_ns);
/* No stage of this type can pay: it is off, its tasks are tiny or name no data, or the most that
 * may be hoped for is below what the copies cost. Said only when enough is known. */
bool verdict_hopeless(const struct task_verdict *v, const struct task_fit *f, uint32_t pages,
                      double uses, double slowdown, double move_ns);

#endif
