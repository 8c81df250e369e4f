/* SPDX-License-Identifier: BSD-2-Clause
 * Threads and processes that the guest makes. A thread of the guest begins at the time of
 * the one that made it; the futex by which it is joined gets its time when it ends. */
#ifndef EMU_QEMU_THREADS_H
#define EMU_QEMU_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* In the first thread, before emu_start. */
void threads_start(void);
/* QEMU has made a virtual CPU, in the thread that calls clone. */
void threads_vcpu_made(unsigned vcpu);
/* A thread runs its first block; false: it has done so before. */
bool threads_first_block(unsigned vcpu);

void threads_clone_enter(uint64_t flags);
void threads_clone_leave(int64_t result);
void threads_exit(void);
/* In the child of fork. */
void threads_forked(void);

#endif
