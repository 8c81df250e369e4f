/* SPDX-License-Identifier: BSD-2-Clause
 * What a task type gains on DRAM, as measured: its instances ran with different shares of their
 * data there, and their times lie on a line (equation 4 of paper 003: a task's time falls with the
 * share of its accesses that DRAM serves). A few wrong words are forgotten with time. Pure; ns. */
#ifndef HYBRID_TASKS_RULES_TASK_FIT_H
#define HYBRID_TASKS_RULES_TASK_FIT_H

#include "base/types.h"

#define FIT_LEAST 6u   /* instances from which on it is known */
#define FIT_MOST  256u /* that it remembers */

struct task_fit { /* zeros at first */
    double n, x, xx, t, xt, tt;
};

struct fit_line {
    bool known;    /* there were instances of different shares */
    double pm_ns;  /* all on PM */
    double saving; /* less with all on DRAM; may be negative */
    double doubt;  /* standard error of `saving` */
};

/* An instance: share of its data on DRAM (0 to 1) and how long it ran. */
void fit_add(struct task_fit *f, double share, double ns);
/* What an earlier run told of instances with all data on DRAM and on PM; 0: nothing. It counts as
 * much as the least that is needed to know, so this run's own times soon outweigh it. */
void fit_recall(struct task_fit *f, double dram_ns, double pm_ns);
/* The same of this run, for a later one. */
void fit_tell(const struct task_fit *f, double *ret_dram_ns, double *ret_pm_ns);
double fit_mean(const struct task_fit *f); /* 0: none yet */
struct fit_line fit_line(const struct task_fit *f);
/* What may be counted on. Measured: two standard errors below it. Not yet: what the model of the
 * whole program says of it (`slowdown`: its time on PM over that on DRAM; 0: not known), of
 * instances that ran on PM. */
double fit_saving(const struct task_fit *f, double slowdown);

#endif
