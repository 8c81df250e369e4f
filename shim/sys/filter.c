/* SPDX-License-Identifier: BSD-2-Clause
 * Filters see numbers and registers, and judge before the kernel looks at the arguments. */
#include "sys/filter.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mempolicy.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include "sys/os.h"
#include "sys/pages/track.h"
#include "sys/raw.h"

static const unsigned long requests[] = {
    OS_PAGEMAP_SCAN,       UFFDIO_API,           UFFDIO_REGISTER,        UFFDIO_UNREGISTER,
    PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_RESET, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_ID,
};

bool os_try_filtered(unsigned n)
{
    struct perf_event_attr none = {.size = sizeof(none), .type = UINT32_MAX};
    const long calls[][7] = {
        /* as PAPI: this thread, any CPU, no group; as hybridctl doctor */
        {SYS_perf_event_open, (long)&none, 0, -1, -1, 0},
        {SYS_perf_event_open, (long)&none, 0, -1, -1, PERF_FLAG_FD_CLOEXEC},
        {SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY},
        {SYS_move_pages, 0, 0, 0, 0, 0, MPOL_MF_MOVE},
        /* as os_table_leave and os_table_borrow */
        {SYS_close_range, ~0u, 0, CLOSE_RANGE_UNSHARE},
        {SYS_pidfd_open, -1, 0},
        {SYS_pidfd_getfd, -1, 2, 0},
        /* as a thread of ours that begins */
        {SYS_sched_getscheduler, -1},
    };
    if (n < HY_ARRAY_SIZE(calls)) {
        const long *c = calls[n];
        long r = raw6(c[0], c[1], c[2], c[3], c[4], c[5], c[6]);
        if (c[0] == SYS_userfaultfd && r >= 0)
            os_close((int)r);
        return true;
    }
    n -= HY_ARRAY_SIZE(calls);
    if (n < HY_ARRAY_SIZE(requests))
        (void)raw3(SYS_ioctl, -1, requests[n], NULL);
    return n < HY_ARRAY_SIZE(requests);
}

/* --- calls of the program's threads, for us ----------------------------------------------------
 */

#define PATIENCE_NS 2000000000ull
#define NAP_NS      1000000ull

static bool calls_forbidden;
static uint32_t under_way;
static __thread uint32_t own __attribute__((tls_model("initial-exec")));

bool os_calls_begin(void)
{
    own++;
    (void)__atomic_add_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&calls_forbidden, __ATOMIC_SEQ_CST))
        return true;
    os_calls_end();
    return false;
}

void os_calls_end(void)
{
    own--;
    (void)__atomic_sub_fetch(&under_way, 1, __ATOMIC_SEQ_CST);
    if (HY_UNLIKELY(__atomic_load_n(&calls_forbidden, __ATOMIC_SEQ_CST)))
        os_wake_word(&under_way);
}

/* In a handler that has interrupted such calls they cannot end before it. */
void os_calls_forbid(void)
{
    uint64_t until = os_now_ns() + PATIENCE_NS;
    uint32_t n;
    __atomic_store_n(&calls_forbidden, true, __ATOMIC_SEQ_CST);
    while ((n = __atomic_load_n(&under_way, __ATOMIC_SEQ_CST)) > own && os_now_ns() < until)
        os_wait_word(&under_way, n, NAP_NS);
}

void os_calls_allow(void)
{
    __atomic_store_n(&calls_forbidden, false, __ATOMIC_SEQ_CST);
}

void os_calls_child(void)
{
    __atomic_store_n(&under_way, own, __ATOMIC_SEQ_CST);
}
