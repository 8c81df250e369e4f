/* SPDX-License-Identifier: BSD-2-Clause
 * Filters see numbers and registers, and judge before the kernel looks at the arguments. */
#include "sys/filter.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "sys/pages/track.h"
#include "sys/raw.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static const unsigned long requests[] = {
    OS_PAGEMAP_SCAN,       UFFDIO_API,           UFFDIO_REGISTER,        UFFDIO_UNREGISTER,
    PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_RESET, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_ID,
};

bool os_try_filtered(unsigned n)
{
    struct perf_event_attr none = {.size = sizeof(none), .type = UINT32_MAX};
    long fd;

    switch (n) {
    case 0: /* as PAPI: this thread, any CPU, no group */
        (void)raw5(SYS_perf_event_open, &none, 0, -1, -1, 0);
        return true;
    case 1: /* as hybridctl doctor */
        (void)raw5(SYS_perf_event_open, &none, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        return true;
    case 2:
        fd = raw1(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
        if (fd >= 0)
            os_close((int)fd);
        return true;
    case 3:
        (void)raw6(SYS_move_pages, 0, 0, NULL, NULL, NULL, MPOL_MF_MOVE);
        return true;
    case 4: /* as os_table_leave and os_table_borrow */
        (void)raw3(SYS_close_range, ~0u, 0, CLOSE_RANGE_UNSHARE);
        return true;
    case 5:
        (void)raw2(SYS_pidfd_open, -1, 0);
        return true;
    case 6:
        (void)raw3(SYS_pidfd_getfd, -1, 2, 0);
        return true;
    default:
        n -= 7;
        if (n < HY_ARRAY_SIZE(requests))
            (void)raw3(SYS_ioctl, -1, requests[n], NULL);
        return n < HY_ARRAY_SIZE(requests);
    }
}
