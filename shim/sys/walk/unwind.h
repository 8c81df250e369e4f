/* SPDX-License-Identifier: BSD-2-Clause
 * Return addresses of the calling thread's stack, by the modules' unwind tables
 * (.eh_frame, DWARF 5 section 6.4). Made for malloc: no lock, no allocation, no
 * system call, no file, a fixed table for all threads. Stops early, and says
 * nothing wrong, at frames without tables (JIT code, hand-written assembly),
 * signal frames and unusual layouts. So on x86-64 (unwind.c); elsewhere libunwind walks
 * (unwind_libunwind.c), with its locks and allocations. */
#ifndef HYBRID_SYS_WALK_UNWIND_H
#define HYBRID_SYS_WALK_UNWIND_H

#include "base/types.h"

/* Does a walk leave the program's descriptors, memory and locks alone? libunwind opens a pipe. */
bool unwind_is_harmless(void);
/* Before the first walk, by a thread that may load libraries. 0, or -errno and why. */
int unwind_open(char *err, size_t err_cap);
/* Up to n return addresses, the innermost first, beginning with the first that
 * is outside [skip_from, skip_to); number of them. */
unsigned unwind_stack(uintptr_t *addr, unsigned n, uintptr_t skip_from, uintptr_t skip_to);
/* No walk is under way in a child. */
void unwind_prefork(void);
void unwind_postfork(void);

#endif
