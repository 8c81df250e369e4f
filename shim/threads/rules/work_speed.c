/* SPDX-License-Identifier: BSD-2-Clause */
#include "threads/rules/work_speed.h"

static struct work_time time_with(const struct work_model *m, double threads)
{
    return work_time(m->f, m->k, m->k->pm_reads, m->k->pm_writes, threads);
}

double work_speed(void *ctx, unsigned threads)
{
    double ns = time_with(ctx, threads).total_ns;
    return ns > 0 ? 1 / ns : 0;
}

double work_served(const struct work_model *m)
{
    return time_with(m, 1).service_ns;
}
