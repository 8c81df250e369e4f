/* SPDX-License-Identifier: BSD-2-Clause
 * The process's one purse of regret (core/rules/regret.h), for all threads of ours that try
 * something out: thread counts, moves of pages, plans. */
#ifndef HYBRID_CORE_PURSE_H
#define HYBRID_CORE_PURSE_H

#include "core/rules/regret.h"

/* The run's time so far, which counts from the first call of all; the emulated machine's where
 * there is one. */
double purse_run_ns(void);
/* Locked until purse_close, so briefly. ret_run_ns: as above, or NULL. From threads of ours only,
 * never from malloc. */
struct regret *purse_open(double *ret_run_ns);
void purse_close(void);
/* In a forked child, which begins with an empty one. */
void purse_child(void);

#endif
