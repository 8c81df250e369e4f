/* SPDX-License-Identifier: BSD-2-Clause
 * A profile's number of threads on PM, checked once while the program runs: with all for a moment
 * and back, paid from the purse of regret (threads/rules/thread_trial.h). One that proves slower is
 * given up, and that is said. By the control thread. */
#ifndef HYBRID_THREADS_CHECK_H
#define HYBRID_THREADS_CHECK_H

#include "base/types.h"

/* Is there a count that is still to be checked, or was given up? */
bool threadcheck_wanted(void);
/* A window with most data on PM: work done, its time; threads that could run. */
void threadcheck_window(double work, double time_ns, unsigned most);
/* The data have moved, or a window tells nothing. */
void threadcheck_stop(void);
/* All threads run for a moment. */
bool threadcheck_opens(void);
bool threadcheck_given_up(void);
void threadcheck_child(void);

#endif
