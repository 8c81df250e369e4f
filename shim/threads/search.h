/* SPDX-License-Identifier: BSD-2-Clause
 * The number of threads on PM where neither the user nor a profile knows it: found by comparing
 * fewer with all while the program runs (threads/rules/threads.h), paid from the purse of regret.
 * For bandwidth-sensitive programs with more than one thread and most of their data on PM only. A
 * profile's number is checked (check.h). By the control thread, but for threadsearch_get. */
#ifndef HYBRID_THREADS_SEARCH_H
#define HYBRID_THREADS_SEARCH_H

#include "classify/rules/classes.h"

struct threadsearch_view {
    unsigned knee;   /* 0: nothing was searched */
    unsigned chosen; /* 0: not yet; all: fewer are no better */
    unsigned tried, searches;
    uint16_t count[16];    /* the last search: all, then counts in the order of trying, */
    uint32_t permille[16]; /* and the speed of each, in thousandths of all */
};

/* Could a search, or a check, ever be wanted in this process? Then windows are, too. */
bool threadsearch_possible(void);
/* A window of counts, what it was classified as, and the machine that it was judged by. */
void threadsearch_window(const struct window *w, const struct classification *c,
                         const struct machine_figures *f);
/* Most data are on PM, or not any more. */
void threadsearch_on_pm(bool on_pm);
/* What is to be told, and what the threads are to be kept to; 0: all. */
void threadsearch_counts(unsigned *ret_answered, unsigned *ret_held);
/* The threads that it would run with if it had the machine to itself; 0: not known. */
unsigned threadsearch_own_best(void);
void threadsearch_get(struct threadsearch_view *ret);
void threadsearch_child(void);

#endif
