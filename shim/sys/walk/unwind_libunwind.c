/* SPDX-License-Identifier: BSD-2-Clause
 * The walk where unwind.c cannot: by libunwind, which is opened for it and nowhere else. It has
 * locks of its own, allocates, and asks the loader, so one thread walks at a time, under the guard,
 * and a fork waits for it. */
#include <errno.h>

#include "base/guard.h"
#include "sys/dl.h"
#include "sys/lock.h"
#include "sys/walk/unwind.h"

#define LIBRARY    "libunwind.so.8"
#define FRAMES_MAX 64 /* frames of ours among them */

typedef int (*backtrace_fn)(void **buffer, int size);
static backtrace_fn walk;
static struct hy_lock lock;

bool unwind_is_harmless(void)
{
    return false;
}

int unwind_open(char *err, size_t err_cap)
{
    if (__atomic_load_n(&walk, __ATOMIC_RELAXED))
        return 0;
    void *library = dl_open_private(LIBRARY, err, err_cap);
    backtrace_fn fn = library ? (backtrace_fn)dl_symbol(library, "unw_backtrace") : NULL;
    if (!fn)
        return -ENOENT;
    __atomic_store_n(&walk, fn, __ATOMIC_RELEASE);
    return 0;
}

__attribute__((noinline)) unsigned unwind_stack(uintptr_t *addr, unsigned n, uintptr_t skip_from,
                                                uintptr_t skip_to)
{
    backtrace_fn fn = __atomic_load_n(&walk, __ATOMIC_ACQUIRE);
    void *pc[FRAMES_MAX];
    unsigned got = 0;
    int saved = errno;
    if (!fn || hy_lock_is_mine(&lock)) /* a handler came in the middle of a walk */
        return 0;
    hy_guard_enter();
    hy_lock_take(&lock);
    int found = fn(pc, FRAMES_MAX);
    hy_lock_release(&lock);
    hy_guard_leave();
    for (int i = 1; i < found && got < n; i++) /* the first lies in this function */
        if (got > 0 || (uintptr_t)pc[i] - skip_from >= skip_to - skip_from)
            addr[got++] = (uintptr_t)pc[i];
    errno = saved;
    return got;
}

void unwind_prefork(void)
{
    hy_lock_prefork(&lock);
}

void unwind_postfork(void)
{
    hy_lock_postfork(&lock);
}
