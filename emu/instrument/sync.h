/* SPDX-License-Identifier: BSD-2-Clause
 * Virtual time across synchronisation: the interposed functions of libpthread (sync.c),
 * libgomp (openmp.c, tasks.c) and all that waits for a time or for others (waits.c).
 *
 * Each object has a clock: the highest time of those who released it; whoever acquires
 * it goes on not before that. A thread that blocks is away meanwhile, so that others do
 * not wait for it (clock.h).
 *
 * Two objects may share a clock; that makes a thread a little late at worst, as threads
 * are never far apart. Objects shared between processes have a clock in each. */
#ifndef EMU_SYNC_H
#define EMU_SYNC_H

#include <stdint.h>

/* Make the key by which threads are seen to end. */
void emu_sync_start(void);
void emu_released(const volatile void *object);
int64_t emu_time_of(const volatile void *object);

#endif
