/* SPDX-License-Identifier: BSD-2-Clause
 * Virtual time across futexes, and so across everything that libc and libgomp make of them:
 * locks, condition variables, barriers, joins.
 *
 * Each futex has a clock: the highest time of those who woke at it. Who has waited goes on
 * not before that. Who wakes all that wait (a barrier's last one) goes on not before the
 * last of them arrived, as the last in real time need not be the last in virtual time.
 * Threads that are certainly woken are made active before they really run, so that nobody
 * gets ahead of them meanwhile. */
#ifndef EMU_QEMU_FUTEX_H
#define EMU_QEMU_FUTEX_H

#include <stdint.h>

/* The guest calls futex(), and has returned from it. Arguments are in guest_self()->call. */
void futex_enter(void);
void futex_leave(int64_t result);
/* The thread ends; the kernel, or QEMU in its stead, wakes those who wait for `clear_tid`. */
void futex_thread_ends(uint64_t clear_tid);
/* In the child of fork: nobody but the caller is there. */
void futex_forked(void);

#endif
