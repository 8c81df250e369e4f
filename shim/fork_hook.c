/* SPDX-License-Identifier: BSD-2-Clause
 * Children that are copies of the process, made by calls for which no fork handlers run. As after
 * fork, the child needs locks that nobody holds, a file of its own and no thread of ours to wait
 * for. clone with CLONE_VM, as of vfork and of threads, copies nothing. One that shares the table
 * of descriptors is left alone: what the child closes would be closed in its parent.
 * fork itself can only be refused here: its handlers cannot.
 * And the core of pthread_atfork: memkind's handlers are called by ours (process/fork.c). */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <unistd.h>

#include "process/process.h"
#include "sys/dl.h"
#include "sys/next.h"

HY_EXPORT pid_t fork(void)
{
    DL_NEXT(fork);
    return HY_UNLIKELY(fork_is_refused()) ? -1 : fn();
}

HY_EXPORT pid_t _Fork(void);
HY_EXPORT pid_t _Fork(void)
{
    DL_NEXT(_Fork);
    if (HY_UNLIKELY(!fn)) {
        errno = ENOSYS;
        return -1;
    }
    if (HY_UNLIKELY(fork_is_refused()))
        return -1;
    bool begun = fork_unhandled_begins();
    pid_t pid = fn();
    int saved = errno;
    if (begun)
        fork_unhandled_ends(pid == 0);
    errno = saved;
    return pid;
}

/* Each object has a pthread_atfork of its own, which comes here. */
HY_EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                                void *dso);
HY_EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                                void *dso)
{
    return fork_keeps(prepare, parent, child) ? 0 : next_at_fork(prepare, parent, child, dso);
}

struct child {
    int (*fn)(void *arg);
    void *arg;
};

static int begin_child(void *arg)
{
    struct child *c = arg;
    fork_unhandled_ends(true);
    return c->fn(c->arg);
}

HY_EXPORT int clone(int (*start)(void *arg), void *stack, int flags, void *arg, ...)
{
    DL_NEXT(clone);
    va_list ap;
    va_start(ap, arg);
    void *parent_tid = va_arg(ap, void *), *tls = va_arg(ap, void *), *tid = va_arg(ap, void *);
    va_end(ap);
    bool copies = !(flags & (CLONE_VM | CLONE_FILES)) && start && stack;
    if (copies && HY_UNLIKELY(fork_is_refused()))
        return -1;
    if (!copies || !fork_unhandled_begins())
        return fn(start, stack, flags, arg, parent_tid, tls, tid);
    struct child child = {start, arg}; /* the child has a copy of this stack as well */
    int pid = fn(begin_child, stack, flags, &child, parent_tid, tls, tid);
    int saved = errno;
    fork_unhandled_ends(false);
    errno = saved;
    return pid;
}
