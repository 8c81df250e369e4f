/* SPDX-License-Identifier: BSD-2-Clause
 * PM stops scaling after a few threads (paper 004, section IV): while most of its data are
 * on PM, the process is confined to fewer CPUs. Threads are never refused and never told to
 * wait, so a barrier cannot hang; pools that ask for the number of CPUs come out right.
 *
 * A thread whose affinity somebody else chose (the program, taskset) is left alone from
 * then on. Programs started by this one get the CPUs that it had at first. */
#ifndef HYBRID_RUNTIME_THREADCAP_H
#define HYBRID_RUNTIME_THREADCAP_H

#include <sched.h>
#include <sys/types.h>

#include "base/cpuset.h"

struct threadcap_view {
    unsigned cap;        /* threads at a time, 0: as many as it has CPUs */
    unsigned base;       /* CPUs that it had at first, 0: not looked at yet */
    unsigned times;      /* changes so far */
    unsigned left_alone; /* threads with an affinity of their own */
};

/* Once the settings are known: confines at once if the data will be on PM. */
void threadcap_begin(void);
/* From the control thread: where the data are decides. */
void threadcap_tick(void);
/* No cap any more, for good: nothing is placed in this process. */
void threadcap_end(void);
/* In a forked child, which starts without. */
void threadcap_child(void);
void threadcap_get(struct threadcap_view *ret);

static inline bool threadcap_active(void)
{
    extern uint32_t hy_thread_cap;
    return __atomic_load_n(&hy_thread_cap, __ATOMIC_RELAXED) != 0;
}

/* --- for the hooks ------------------------------------------------------------ */

/* Before a question about CPUs: it may come before our constructor (OpenMP). */
void threadcap_before_question(void);
/* `real`, or fewer while the calling thread is confined. */
long threadcap_online(long real);
/* An affinity as the kernel told it: while there are no more threads than the cap they are not
 * confined, and the answer is what they would be confined to. */
void threadcap_answer(pid_t tid, void *mask, size_t bytes);
/* The program has set the affinity of a thread of its own (0: the calling one). */
void threadcap_was_set(pid_t tid);
/* Around starting another program: the calling thread, if it is confined, is given what the
 * process had at first, so that the other inherits it; and back, if that was so and we are
 * still here. */
bool threadcap_open(void);
void threadcap_close(bool opened);

#endif
