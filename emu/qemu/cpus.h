/* SPDX-License-Identifier: BSD-2-Clause
 * A guest asks for CPUs and gets those of the emulated machine. The kernel is asked for all
 * that it has meanwhile. */
#ifndef EMU_QEMU_CPUS_H
#define EMU_QEMU_CPUS_H

#include <stdint.h>

void cpus_set_enter(int tid, uint64_t bytes, uint64_t mask);
void cpus_set_leave(int64_t result);
/* sched_getaffinity, getcpu have returned. */
void cpus_get_leave(int tid, uint64_t bytes, uint64_t mask, int64_t result);
void cpus_which_leave(uint64_t cpu, uint64_t node);
/* A file has been opened for reading: those of /proc and /sys that tell of CPUs are
 * replaced behind the descriptor. */
void cpus_file_opened(uint64_t path, int fd, uint64_t flags);

#endif
