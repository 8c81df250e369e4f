/* SPDX-License-Identifier: BSD-2-Clause
 * The calls for which a seccomp filter might kill: those that ordinary programs do not make. */
#ifndef HYBRID_SYS_FILTER_H
#define HYBRID_SYS_FILTER_H

#include "base/types.h"

/* Makes the n-th of them so that it has no effect: with the registers that filters look at, and
 * memory or descriptors that are none. Whether it is refused does not matter. false: there is
 * no n-th. For a process that may be lost. */
bool os_try_filtered(unsigned n);

/* Between these two a thread of the program makes calls for us that an allocator does not make:
 * files, messages, a thread of ours. false: not any more, as a filter is there or about to be. */
bool os_calls_begin(void);
void os_calls_end(void);
/* From now on none begins; those under way in other threads are waited for, two seconds at most. */
void os_calls_forbid(void);
void os_calls_allow(void);
/* In a forked child, which has one thread. */
void os_calls_child(void);

#endif
