/* SPDX-License-Identifier: BSD-2-Clause
 * What system calls mean for virtual time and for pages. See syscalls.h. A call can be neither
 * kept from the kernel nor its result be changed: only the memory that it reads and writes. */
#include "qemu/syscalls.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "program/mapped.h"
#include "pages/pages.h"
#include "qemu/cpus.h"
#include "qemu/exec.h"
#include "qemu/futex.h"
#include "qemu/guest.h"
#include "qemu/hypercall.h"
#include "qemu/shared.h"
#include "qemu/threads.h"
#include "qemu/times.h"

/* --- calls that may block -------------------------------------------------- */

/* A thread that surely does not block stays, so that nobody gets ahead of it meanwhile. */
static void away_unless_ready(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    if (poll(&p, 1, 0) == 0)
        guest_away(0);
}

static void away_for_ms(int64_t ms)
{
    struct guest_call *c = &guest_self()->call;
    if (ms == 0)
        return;
    if (ms > 0)
        c->deadline = emu_now() + ms * 1000000000;
    guest_away(0);
}

/* A relative timeout in a timespec, or in a timeval; none if there is no pointer. */
static void away_for_time(uint64_t address, int64_t unit_ps)
{
    struct guest_call *c = &guest_self()->call;
    struct guest_timespec t;

    if (address && guest_read(address, &t, sizeof(t)) == 0) {
        if (t.sec == 0 && t.nsec == 0)
            return;
        t.nsec *= unit_ps / 1000;
        c->deadline = emu_now() + times_ps(&t);
    }
    guest_away(0);
}

/* Whatever its arguments say. */
static bool may_always_wait(int64_t number)
{
    switch (number) {
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_flock:
    case SYS_connect:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
    case SYS_io_getevents:
    case SYS_splice:
    case SYS_tee:
    case SYS_sendfile:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_exit_group:
        return true;
    default:
        return false;
    }
}

static void away_if_blocking(int64_t number, const uint64_t a[6])
{
    switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
        away_unless_ready((int)a[0], POLLIN);
        break;
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
        away_unless_ready((int)a[0], POLLOUT);
        break;
    case SYS_poll:
        away_for_ms((int)a[2]);
        break;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
        away_for_ms((int)a[3]);
        break;
    case SYS_ppoll:
        away_for_time(a[2], 1000);
        break;
    case SYS_pselect6:
        away_for_time(a[4], 1000);
        break;
    case SYS_select:
        away_for_time(a[4], 1000000);
        break;
    case SYS_epoll_pwait2:
        away_for_time(a[3], 1000);
        break;
    case SYS_rt_sigtimedwait:
        away_for_time(a[2], 1000);
        break;
    case SYS_wait4:
        if (!(a[2] & WNOHANG))
            guest_away(0);
        break;
    case SYS_waitid:
        if (!(a[3] & WNOHANG))
            guest_away(0);
        break;
    case SYS_fcntl:
        if (a[1] == F_SETLKW || a[1] == F_OFD_SETLKW)
            guest_away(0);
        break;
    default:
        if (may_always_wait(number))
            guest_away(0);
        break;
    }
}

static bool timed(int64_t number)
{
    return number == SYS_poll || number == SYS_ppoll || number == SYS_select ||
           number == SYS_pselect6 || number == SYS_epoll_wait || number == SYS_epoll_pwait ||
           number == SYS_epoll_pwait2;
}

/* --- mappings --------------------------------------------------------------- */

static void mapped(const uint64_t a[6], uint64_t at)
{
    int fd = a[3] & MAP_ANONYMOUS ? -1 : (int)a[4];

    emu_mapped(at, a[1], fd);
    if (a[3] & MAP_SHARED) /* MAP_SHARED_VALIDATE, too */
        shared_mapped(at, a[1], fd, a[5]);
    else
        shared_unmapped(at, a[1]);
}

/* The heap by brk: what it shrinks by is unmapped. */
static void heap_ends_at(uint64_t end)
{
    static _Atomic uint64_t highest;
    uint64_t old = atomic_exchange(&highest, end);
    if (end < old)
        emu_unmapped((end + EMU_PAGE_BYTES - 1) & ~(EMU_PAGE_BYTES - 1), old - end);
}

/* --- before and after ------------------------------------------------------- */

void syscalls_enter(int64_t number, const uint64_t a[6])
{
    struct guest_call *c = &guest_self()->call;

    *c = (struct guest_call){.deadline = -1, .slot = -1, .away = false};
    for (int i = 0; i < 6; i++)
        c->arg[i] = a[i];
    if (number == EMU_HYPERCALL) {
        hypercall(a[0]);
        return;
    }
    if (emu_self.told_away) /* its calls are part of a wait of its own (pmemu_away) */
        return;
    switch (number) {
    case SYS_futex:
        futex_enter();
        return;
    case SYS_nanosleep:
        times_sleep_enter(CLOCK_MONOTONIC, false, a[0]);
        return;
    case SYS_clock_nanosleep:
        times_sleep_enter((int)a[0], (a[1] & TIMER_ABSTIME) != 0, a[2]);
        return;
    case SYS_sched_setaffinity:
        cpus_set_enter((int)a[0], a[1], a[2]);
        return;
    case SYS_clone:
    case SYS_fork:
    case SYS_vfork:
        threads_clone_enter(number == SYS_clone ? a[0] : 0);
        return;
    case SYS_set_tid_address:
        guest_self()->clear_tid = a[0];
        return;
    case SYS_exit:
        threads_exit();
        return;
    case SYS_execve:
        emu_settle();
        exec_enter(a[0], a[1], a[2]);
        return;
    case SYS_munmap:
        emu_unmapped(a[0], a[1]);
        shared_unmapped(a[0], a[1]);
        return;
    case SYS_sched_yield:
        emu_settle();
        return;
    default:
        break;
    }
    emu_settle_debt();
    away_if_blocking(number, a);
}

static void done(int64_t number, const uint64_t a[6], int64_t result)
{
    switch (number) {
    case SYS_mmap:
        mapped(a, (uint64_t)result);
        break;
    case SYS_mremap:
        emu_remapped(a[0], a[1], (uint64_t)result, a[2]);
        break;
    case SYS_brk:
        heap_ends_at((uint64_t)result);
        break;
    case SYS_madvise:
        emu_advised(a[0], a[1], (int)a[2]);
        break;
    case SYS_clock_gettime:
        times_clock_read((int)a[0], a[1]);
        break;
    case SYS_gettimeofday:
        times_of_day_read(a[0]);
        break;
    case SYS_getrusage:
        times_used((int)a[0], a[1]);
        break;
    case SYS_times:
        times_of_process(a[0]);
        break;
    case SYS_sched_getaffinity:
        cpus_get_leave((int)a[0], a[1], a[2], result);
        break;
    case SYS_getcpu:
        cpus_which_leave(a[0], a[1]);
        break;
    case SYS_open:
        cpus_file_opened(a[0], (int)result, a[1]);
        break;
    case SYS_openat:
        cpus_file_opened(a[1], (int)result, a[2]);
        break;
    default:
        break;
    }
}

void syscalls_leave(int64_t number, int64_t result)
{
    struct guest_call *c = &guest_self()->call;
    uint64_t a[6];

    for (int i = 0; i < 6; i++)
        a[i] = c->arg[i];
    guest_unpatch();
    if (emu_self.told_away)
        return;
    if (number == SYS_futex) {
        futex_leave(result);
        return;
    }
    if (number == SYS_nanosleep || number == SYS_clock_nanosleep) {
        times_sleep_leave(result);
        return;
    }
    if (number == SYS_clone || number == SYS_fork || number == SYS_vfork)
        threads_clone_leave(result);
    /* A timeout takes its virtual length; then whoever has not come as far goes first. */
    if (c->away && result == 0 && c->deadline >= 0 && timed(number)) {
        guest_back(c->deadline);
        emu_settle();
    } else {
        guest_back(-1);
    }
    if (result >= 0 || result < -4095)
        done(number, a, result);
}
