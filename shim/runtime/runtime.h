/* SPDX-License-Identifier: BSD-2-Clause
 * The runtime wires the services to each other and has the states of the
 * library. The hooks see only this: a table of allocation functions that is
 * swapped as a whole, and the mapping calls. */
#ifndef HYBRID_RUNTIME_RUNTIME_H
#define HYBRID_RUNTIME_RUNTIME_H

#include <sys/types.h>

#include "base/types.h"
#include "sys/next.h"

/* Transitions go downwards only.
 *   BOOT      nothing is decided yet: the next allocator serves
 *   SERVING   our heap serves, all of it DRAM: the process is smaller than HYBRID_START
 *   STEERING  memory is placed
 *   PASSIVE   nothing to place in this process, for good
 *   ENDED     our destructor has run; whoever served goes on serving
 * Every change is a compare-and-exchange. */
enum hy_state { HY_BOOT, HY_SERVING, HY_STEERING, HY_PASSIVE, HY_ENDED };

extern const struct alloc_ops *hy_ops; /* never NULL; read with runtime_ops() */

static inline const struct alloc_ops *runtime_ops(void)
{
    return __atomic_load_n(&hy_ops, __ATOMIC_ACQUIRE);
}

enum hy_state runtime_state(void);
const char *runtime_state_name(enum hy_state s);

/* Settings and first decisions: once, by the constructor or by a hook that is called before it. */
void runtime_prepare(void);
/* Before the program makes a thread. */
void runtime_before_thread(void);
/* It was made: filters let it. */
void runtime_thread_made(void);
/* As the libc's functions of the same names. */
void *runtime_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int runtime_munmap(void *addr, size_t len);
int runtime_ioctl(int fd, unsigned long request, void *arg);
void *runtime_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new_addr);

#endif
