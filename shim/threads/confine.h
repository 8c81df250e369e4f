/* SPDX-License-Identifier: BSD-2-Clause
 * Which CPUs the threads have, and what questions about CPUs are answered with. */
#ifndef HYBRID_THREADS_CONFINE_H
#define HYBRID_THREADS_CONFINE_H

#include "threadcap.h"

/* Answer questions as if there were `told` CPUs, and keep the threads to `held` of them; 0:
 * all that there are. Those `taken` come last. What changes is told in the log, with why. */
void threadcap_confine(unsigned answered, unsigned held, const struct hy_cpus *taken,
                       const char *why);
/* What questions are answered with; empty: all that there are. */
void threadcap_answered(struct hy_cpus *ret);
/* What the process had at first; asks the kernel the first time. false: it does not tell. */
bool threadcap_base(struct hy_cpus *ret);
void threadcap_count(struct threadcap_view *ret); /* cap, held, base, times, left_alone */
void confine_forget_created(void);                /* in a forked child, */
void confine_child(void);                         /* and in one whose parent had begun to place */

#endif
