/* SPDX-License-Identifier: BSD-2-Clause
 * Turns of a list of programs, so many at a time, as a batch starts them: the next begins at the
 * virtual time at which one has ended, however late the computer gets there. All are started at
 * once and wait before they make their data.
 *
 * The file is made by the first comer. Who is killed leaves the others waiting, whom whoever
 * started them has to end. */
#ifndef BENCH_WORKLOADS_TURN_H
#define BENCH_WORKLOADS_TURN_H

#include <stdint.h>

#define TURN_PROGRAMS 64

/* Wait for the turn of number `own` (from 0) of `count`, of which `slots` run at a time. NULL or
 * what is wrong. */
const char *turn_take(const char *path, unsigned own, unsigned slots, unsigned count);
/* At the end, when nothing is left to do: the next one begins. 0: there was no turn_take. */
int turn_over(int64_t *ret_begin_ns, int64_t *ret_end_ns);

#endif
