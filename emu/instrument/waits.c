/* SPDX-License-Identifier: BSD-2-Clause
 * Waits with a time limit, sleeps, futexes by syscall(2) (C++20's atomic waits, latches and
 * semaphores), and waits for other processes.
 *
 * A sleep has its length in virtual time and, as the world outside may be waited for, in
 * real time as well. A wait that times out has had the length that it was given. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "program/start.h"
#include "instrument/real.h"
#include "instrument/sync.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define PS_PER_NS 1000
/* Longer ones are as good as for ever: a day. */
#define LONGEST_NS ((int64_t)86400 * 1000000000)

static int64_t length_ps(const struct timespec *t)
{
    int64_t ns = t->tv_sec > 86400 ? LONGEST_NS : (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
    return (ns < 0 ? 0 : ns < LONGEST_NS ? ns : LONGEST_NS) * PS_PER_NS;
}

/* From now to a point of time. */
static int64_t until_ps(clockid_t clock, const struct timespec *at)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0;
    now.tv_sec = at->tv_sec - now.tv_sec;
    now.tv_nsec = at->tv_nsec - now.tv_nsec;
    return length_ps(&now);
}

/* --- with a time limit ------------------------------------------------------ */

/* Around a wait: `object` has been released, or the time is over. */
#define TIMED(clock, at, object, timed_out, call)                                                  \
    int64_t length = emu_live() ? until_ps(clock, at) : 0, began;                                  \
    int r;                                                                                         \
    emu_away(0);                                                                                   \
    began = emu_now();                                                                             \
    r = call;                                                                                      \
    emu_back((timed_out) ? began + length : emu_time_of(object));                                  \
    return r

EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
    REAL(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    emu_settle_debt();
    emu_released(m);
    TIMED(CLOCK_REALTIME, t, c, r == ETIMEDOUT, f(c, m, t));
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t k,
                                  const struct timespec *t)
{
    REAL(int, pthread_cond_clockwait, pthread_cond_t *, pthread_mutex_t *, clockid_t,
         const struct timespec *);
    emu_settle_debt();
    emu_released(m);
    TIMED(k, t, c, r == ETIMEDOUT, f(c, m, k, t));
}

#define TIMED_LOCK(name, type)                                                                     \
    EXPORT int name(type *o, const struct timespec *t)                                             \
    {                                                                                              \
        REAL(int, name, type *, const struct timespec *);                                          \
        TIMED(CLOCK_REALTIME, t, o, r == ETIMEDOUT, f(o, t));                                      \
    }
#define CLOCKED_LOCK(name, type)                                                                   \
    EXPORT int name(type *o, clockid_t k, const struct timespec *t)                                \
    {                                                                                              \
        REAL(int, name, type *, clockid_t, const struct timespec *);                               \
        TIMED(k, t, o, r == ETIMEDOUT, f(o, k, t));                                                \
    }

TIMED_LOCK(pthread_mutex_timedlock, pthread_mutex_t)
TIMED_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_t)
TIMED_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_t)
CLOCKED_LOCK(pthread_mutex_clocklock, pthread_mutex_t)
CLOCKED_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t)
CLOCKED_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t)

EXPORT int sem_timedwait(sem_t *s, const struct timespec *t)
{
    REAL(int, sem_timedwait, sem_t *, const struct timespec *);
    TIMED(CLOCK_REALTIME, t, s, r != 0 && errno == ETIMEDOUT, f(s, t));
}

EXPORT int sem_clockwait(sem_t *s, clockid_t k, const struct timespec *t)
{
    REAL(int, sem_clockwait, sem_t *, clockid_t, const struct timespec *);
    TIMED(k, t, s, r != 0 && errno == ETIMEDOUT, f(s, k, t));
}

/* --- sleeps ----------------------------------------------------------------- */

EXPORT int clock_nanosleep(clockid_t k, int flags, const struct timespec *t, struct timespec *left)
{
    REAL(int, clock_nanosleep, clockid_t, int, const struct timespec *, struct timespec *);
    int r;
    emu_doze(!emu_live() ? 0 : flags & TIMER_ABSTIME ? until_ps(k, t) : length_ps(t));
    r = f(k, flags, t, left);
    emu_doze_end(r == 0);
    return r;
}

EXPORT int nanosleep(const struct timespec *t, struct timespec *left)
{
    int r = clock_nanosleep(CLOCK_REALTIME, 0, t, left);
    if (r == 0)
        return 0;
    errno = r;
    return -1;
}

EXPORT int usleep(useconds_t us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return nanosleep(&t, NULL);
}

EXPORT unsigned sleep(unsigned s)
{
    struct timespec t = {.tv_sec = s}, left = {0};
    return nanosleep(&t, &left) == 0 ? 0 : (unsigned)left.tv_sec + (left.tv_nsec >= 500000000);
}

/* --- files and processes: first without waiting ------------------------------ */

/* What is waited for has no clock. */
#define BLOCKING(ready, over, length, call)                                                        \
    int64_t began;                                                                                 \
    if (!emu_live() || (ready))                                                                    \
        return call;                                                                               \
    emu_away(0);                                                                                   \
    began = emu_now();                                                                             \
    r = call;                                                                                      \
    emu_back((over) ? began + (length) : -1);                                                      \
    return r

EXPORT int poll(struct pollfd *p, nfds_t n, int ms)
{
    REAL(int, poll, struct pollfd *, nfds_t, int);
    int r;
    BLOCKING(ms == 0 || f(p, n, 0) != 0, r == 0, (int64_t)ms * 1000000 * PS_PER_NS, f(p, n, ms));
}

EXPORT int epoll_wait(int fd, struct epoll_event *e, int n, int ms)
{
    REAL(int, epoll_wait, int, struct epoll_event *, int, int);
    int r = emu_live() ? f(fd, e, n, 0) : 0;
    if (r != 0)
        return r;
    BLOCKING(ms == 0, r == 0, (int64_t)ms * 1000000 * PS_PER_NS, f(fd, e, n, ms));
}

EXPORT int select(int n, fd_set *r_, fd_set *w, fd_set *x, struct timeval *t)
{
    REAL(int, select, int, fd_set *, fd_set *, fd_set *, struct timeval *);
    struct timespec length = {.tv_sec = t ? t->tv_sec : 0, .tv_nsec = t ? t->tv_usec * 1000 : 0};
    int r;
    BLOCKING(t && length_ps(&length) == 0, r == 0, length_ps(&length), f(n, r_, w, x, t));
}

/* The child ends, if it is emulated, not after the last of those that are left. */
EXPORT pid_t wait4(pid_t pid, int *status, int flags, struct rusage *u)
{
    REAL(pid_t, wait4, pid_t, int *, int, struct rusage *);
    pid_t r;
    if (emu_live() && !(flags & WNOHANG)) {
        r = f(pid, status, flags | WNOHANG, u);
        if (r != 0)
            return r;
    }
    BLOCKING(flags & WNOHANG, false, 0, f(pid, status, flags, u));
}

EXPORT pid_t waitpid(pid_t pid, int *status, int flags)
{
    return wait4(pid, status, flags, NULL);
}

EXPORT pid_t wait(int *status)
{
    return wait4(-1, status, 0, NULL);
}

/* --- system calls by number --------------------------------------------------- */

static long futex(long a[6])
{
    REAL(long, syscall, long, ...);
    const void *word = (const void *)a[0]; /* NOLINT: a pointer was passed */
    int op = (int)a[1] & FUTEX_CMD_MASK;
    int64_t length = 0, began;
    long r;

    if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET && op != FUTEX_LOCK_PI) {
        emu_settle_debt();
        emu_released(word);
        /* Who waits is there at once, not when the computer gets to it. */
        if (op == FUTEX_WAKE)
            emu_release_some((uintptr_t)word, emu_now(), (int)a[2]);
        return f(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    if (a[3] && op == FUTEX_WAIT)
        length = length_ps((const struct timespec *)a[3]); /* NOLINT */
    else if (a[3])
        length = until_ps((int)a[1] & FUTEX_CLOCK_REALTIME || op == FUTEX_LOCK_PI ? CLOCK_REALTIME
                                                                                  : CLOCK_MONOTONIC,
                          (const struct timespec *)a[3]); /* NOLINT */
    /* As the kernel would say, without having been away: until then nobody who changes the
     * word is far ahead of us. */
    emu_settle();
    if (op != FUTEX_LOCK_PI && atomic_load((const _Atomic uint32_t *)word) != (uint32_t)a[2]) {
        errno = EAGAIN;
        return -1;
    }
    emu_away(op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET ? (uintptr_t)word : 0);
    began = emu_now();
    r = f(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (r == 0)
        emu_back(emu_time_of(word));
    else if (errno == ETIMEDOUT)
        emu_back(began + length);
    else /* changed meanwhile, by one who was not held up by us: who may have waked, too */
        emu_back(emu_time_of(word) > began ? emu_time_of(word) : -1);
    return r;
}

EXPORT long syscall(long number, ...)
{
    REAL(long, syscall, long, ...);
    long a[6];
    va_list ap;

    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    /* The machine's own waits come here, too. */
    if (number == SYS_futex && emu_live() && !emu_core_has((const void *)a[0])) /* NOLINT */
        return futex(a);
    if (number == SYS_exit_group)
        emu_finish();
    return f(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
