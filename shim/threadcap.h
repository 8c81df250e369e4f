/* SPDX-License-Identifier: BSD-2-Clause
 * PM stops scaling after a few threads (paper 004, section IV): while most of its data are
 * on PM, the process is confined to fewer CPUs. Threads are never refused and never told to
 * wait, so a barrier cannot hang; pools that ask for the number of CPUs come out right.
 *
 * A thread whose affinity somebody else chose (the program, taskset) is left alone from
 * then on. Programs started by this one get the CPUs that it had at first.
 *
 * threads/confine.c confines and answers, cap.c says when and to how many, search.c finds the
 * number where nobody knows it, check.c whether a profile's holds; the decisions are in
 * threads/rules/. */
#ifndef HYBRID_THREADCAP_H
#define HYBRID_THREADCAP_H

#include <sys/types.h>

#include "base/cpuset.h"

struct threadcap_view {
    unsigned cap;           /* threads at a time, as questions are answered; 0: all its CPUs */
    unsigned held;          /* CPUs that its threads are kept to, 0: all */
    unsigned base;          /* CPUs that it had at first, 0: not looked at yet */
    unsigned left;          /* of these, those that others leave; 0: all */
    unsigned times;         /* changes so far */
    unsigned left_alone;    /* threads with an affinity of their own */
    unsigned live, most;    /* threads of the program: now, and the most that were seen */
    unsigned running_milli; /* that ran at a time, on average over the last interval */
    uint64_t created;       /* threads made by pthread_create so far */
};

/* --- when: threads/cap.c ------------------------------------------------------------ */

/* Once the settings are known: confines at once if the data will be on PM. */
void threadcap_begin(void);
/* Could this process ever be confined? */
bool threadcap_possible(void);
/* The registry can be told. */
void threadcap_engaged(void);
/* The process takes part in the registry: what others leave is known before it asks. */
void threadcap_joined(void);
/* From the control thread: where the data are decides. */
void threadcap_tick(void);
/* No cap any more, for good: nothing is placed in this process. */
void threadcap_end(void);
/* In a forked child, which starts without; `placed`: its parent had begun to place. */
void threadcap_child(bool placed);
void threadcap_get(struct threadcap_view *ret);

/* --- for the hooks (threadcap.c) ------------------------------------------------------ */

static inline bool threadcap_active(void)
{
    extern uint32_t hy_thread_active; /* questions are answered, or threads held, otherwise */
    return __atomic_load_n(&hy_thread_active, __ATOMIC_RELAXED) != 0;
}

/* Before a question about CPUs. */
void threadcap_before_question(void);
/* Before the program sets an affinity: what it had at first must be known. */
void threadcap_before_set(void);
/* `real`, or fewer while the calling thread is confined. */
long threadcap_online(long real);
/* An affinity as the kernel told it (tid 0: the calling thread): while there are no more threads
 * than the cap they are not confined, and the answer is what they would be confined to. */
void threadcap_answer(pid_t tid, void *mask, size_t bytes);
/* The program has set the affinity of a thread (0: the calling one), maybe of another process. */
void threadcap_was_set(pid_t tid);
/* A thread was made. */
static inline void threadcap_created(void)
{
    extern uint64_t hy_threads_created;
    __atomic_fetch_add(&hy_threads_created, 1, __ATOMIC_RELAXED);
}
/* Around starting another program: the calling thread, if it is confined, is given what the
 * process had at first, so that the other inherits it; and back, if that was so and we are
 * still here. */
bool threadcap_open(void);
void threadcap_close(bool opened);

#endif
