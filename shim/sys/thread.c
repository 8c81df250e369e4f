/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/thread.h"

#include <linux/close_range.h>
#include <sched.h>
#include <sys/mman.h>

#include "sys/os.h"
#include "sys/raw.h"
#include "sys/usage.h"

static __thread bool apart __attribute__((tls_model("initial-exec")));

int os_table_leave(void)
{
    if (!os_filters_harmless())
        return -EACCES;
    /* From there messages reach stderr by these. */
    if (raw2(SYS_pidfd_open, -1, 0) != -EINVAL || raw3(SYS_pidfd_getfd, -1, 2, 0) != -EBADF)
        return -ENOSYS;
    /* Nothing is copied and closed, which drivers and network file systems would notice. */
    long r = raw3(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
    if (r == 0)
        apart = true;
    return (int)r;
}

void os_table_join(void)
{
    apart = true;
}

bool os_table_apart(void)
{
    return apart;
}

int os_table_borrow(int fd)
{
    long process = raw2(SYS_pidfd_open, raw0(SYS_getpid), 0);
    if (process < 0)
        return (int)process;
    long r = raw3(SYS_pidfd_getfd, process, fd, 0);
    os_close((int)process);
    return (int)r;
}

/* A policy that runs before all others is a promise of the program about its own code. */
void os_thread_as_usual(void)
{
    struct sched_param none = {0};
    long policy = raw1(SYS_sched_getscheduler, 0);
    if (policy >= 0)
        policy &= ~SCHED_RESET_ON_FORK;
    if (policy == SCHED_FIFO || policy == SCHED_RR)
        (void)raw3(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
}

bool os_thread_exists(int tid)
{
    return raw3(SYS_tgkill, raw0(SYS_getpid), tid, 0) != -ESRCH;
}

int os_wipe_on_fork(void *page)
{
    return (int)raw3(SYS_madvise, page, HY_PAGE, MADV_WIPEONFORK);
}
