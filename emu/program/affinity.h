/* SPDX-License-Identifier: BSD-2-Clause
 * Questions about the CPUs of the emulated machine, and on which of them threads run: the
 * same for every front end. Threads are named by their kernel numbers (tid), those of
 * other processes of the machine too; 0 is the calling one. */
#ifndef EMU_AFFINITY_H
#define EMU_AFFINITY_H

#include "settings/start_mask.h"

/* The caller gives up its turn: sched_yield, or after it has lost its CPU. Costs what a
 * system call does. */
void emu_cpu_leave_turn(void);
/* The CPU that the calling thread used last. */
int emu_cpu_current(void);
/* -ESRCH: no thread of the machine has this number. All answer before the start, too. */
int emu_affinity_get(int tid, struct emu_cpuset *ret);
/* -EINVAL: no CPU of the machine among them. -ESRCH as above. */
int emu_affinity_set(int tid, const struct emu_cpuset *s);
/* For the thread that is to be made in this slot (emu_thread_prepare). -EINVAL. */
int emu_affinity_prepared(int slot, const struct emu_cpuset *s);

#endif
