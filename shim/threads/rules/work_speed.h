/* SPDX-License-Identifier: BSD-2-Clause
 * Progress of a program as the searches for thread counts see it, from the work of a window. Pure.
 */
#ifndef HYBRID_THREADS_RULES_WORK_SPEED_H
#define HYBRID_THREADS_RULES_WORK_SPEED_H

#include "classify/rules/slowdown.h"

struct work_model {
    const struct machine_figures *f;
    const struct work *k;
};

/* A threads_speed_fn: predicted speed with so many threads, the data as they lie. ctx: struct
 * work_model. */
double work_speed(void *ctx, unsigned threads);
/* The time that the memories need for the lines of the window: its measure of progress. */
double work_served(const struct work_model *m);

#endif
