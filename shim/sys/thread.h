/* SPDX-License-Identifier: BSD-2-Clause
 * What threads of ours need, so that the program does not notice them: a table of descriptors of
 * their own, sleep that can be ended, and whether one has really gone. */
#ifndef HYBRID_SYS_THREAD_H
#define HYBRID_SYS_THREAD_H

#include "base/types.h"

/* --- descriptors ------------------------------------------------------------ */

/* Numbers in the program's table are the program's: close(0); open() must give 0. And a table of
 * ours that held copies of its descriptors would keep its pipes open. So a thread of ours leaves
 * the table for an empty one. Threads that it makes share that one (os_table_join).
 * -EACCES: a filter is in force that may kill who asks; -ENOSYS: Linux < 5.9. Then all stays. */
int os_table_leave(void);
void os_table_join(void);
/* Is this thread's table not the program's? Numbers mean nothing in the other one; /proc/self/fd
 * is the program's in both, /proc/thread-self/fd the thread's. */
bool os_table_apart(void);
/* A descriptor of the program's table, for a thread that has left it: what the number is now, to
 * be closed by os_close. -EBADF, -EPERM, ... */
int os_table_borrow(int fd);

/* --- beginning and end -------------------------------------------------------------- */

/* This thread, which has inherited a real-time policy, gets the usual one; a nice value stays. */
void os_thread_as_usual(void);
/* A thread of this process; false once the kernel counts it no more. */
bool os_thread_exists(int tid);
/* The processor's counter, by which the vDSO tells the time, is closed to this thread and to those
 * that it makes (PR_SET_TSC): the kernel is asked instead. */
void os_clock_by_call(bool on);
/* The page is zero in a child that has a copy of this memory. */
int os_wipe_on_fork(void *page);

/* This thread is in a call on memory that is the library's own, not the program's. */
extern __thread int hy_raw_memory __attribute__((tls_model("initial-exec")));

#endif
