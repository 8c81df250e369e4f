/* SPDX-License-Identifier: BSD-2-Clause
 * The guest's clocks. See times.h. */
#include "qemu/times.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"
#include "qemu/guest.h"

#define NS_PER_S ((int64_t)1000000000)
#define FAR_SEC  8640000 /* a hundred days: never */

/* Of what clock_gettime knows; the coarse ones are their fine ones. */
enum base { REALTIME, MONOTONIC, BASES, NONE = BASES };

static const int real_clock[BASES] = {CLOCK_REALTIME, CLOCK_MONOTONIC};

static enum base base_of(int clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return REALTIME;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return MONOTONIC;
    default:
        return NONE;
    }
}

static int64_t real_ns(enum base b)
{
    struct timespec t;
    clock_gettime(real_clock[b], &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* The clock at virtual time 0, the same for all processes of the machine. */
static int64_t zero_ns(enum base b)
{
    _Atomic int64_t *zero = &emu_core_machine()->guest_clock_ns[b];
    int64_t v = atomic_load(zero), first;

    if (v != 0)
        return v;
    first = real_ns(b) - emu_now() / 1000;
    return atomic_compare_exchange_strong(zero, &v, first) ? first : v;
}

/* Threads are a little apart, but a clock must not go back between them. */
static int64_t now_ns(enum base b)
{
    static _Atomic int64_t latest;
    int64_t now = emu_now() / 1000, old = atomic_load(&latest);

    while (old < now && !atomic_compare_exchange_weak(&latest, &old, now))
        ;
    return zero_ns(b) + (old > now ? old : now);
}

static uint64_t count(enum emu_counter c)
{
    return atomic_load(&emu_core_process()->count[c]);
}

/* Time in which this thread ran; of the process: what its settled threads have run. */
static int64_t cpu_ns(int clock)
{
    const struct guest_thread *t = guest_self();

    if (clock == CLOCK_THREAD_CPUTIME_ID)
        return (emu_now() - t->born_ps - t->idle_ps) / 1000;
    emu_settle();
    return (int64_t)(count(EMU_C_compute_ns) + count(EMU_C_stall_ns) + count(EMU_C_wait_ns));
}

static int64_t ns_of(const struct guest_timespec *t, int64_t most_sec)
{
    if (t->sec < 0 || t->nsec < 0)
        return 0;
    return (t->sec < most_sec ? t->sec : most_sec) * NS_PER_S + t->nsec;
}

int64_t times_ps(const struct guest_timespec *t)
{
    return ns_of(t, FAR_SEC) * 1000;
}

int64_t times_real_deadline(int clock, uint64_t address)
{
    enum base b = base_of(clock);
    struct guest_timespec t, real;
    int64_t left_ns, at;

    if (b == NONE || !emu_live() || guest_read(address, &t, sizeof(t)) < 0)
        return -1;
    left_ns = ns_of(&t, INT64_MAX / NS_PER_S - 1) - (zero_ns(b) + emu_now() / 1000);
    left_ns = left_ns < 0 ? 0 : left_ns < FAR_SEC * NS_PER_S ? left_ns : FAR_SEC * NS_PER_S;
    at = real_ns(b) + left_ns;
    real = (struct guest_timespec){at / NS_PER_S, at % NS_PER_S};
    if (guest_patch(address, &real, sizeof(real)) < 0)
        return -1;
    return emu_now() + left_ns * 1000;
}

void times_clock_read(int clock, uint64_t timespec)
{
    enum base b = base_of(clock);
    int64_t ns;
    struct guest_timespec t;

    if (!emu_live())
        return;
    if (b != NONE)
        ns = now_ns(b);
    else if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID)
        ns = cpu_ns(clock);
    else
        return;
    t = (struct guest_timespec){ns / NS_PER_S, ns % NS_PER_S};
    (void)guest_write(timespec, &t, sizeof(t));
}

void times_of_day_read(uint64_t timeval)
{
    int64_t ns;
    struct guest_timespec t;

    if (!emu_live() || timeval == 0)
        return;
    ns = now_ns(REALTIME);
    t = (struct guest_timespec){ns / NS_PER_S, ns % NS_PER_S / 1000};
    (void)guest_write(timeval, &t, sizeof(t));
}

void times_sleep_enter(int clock, bool absolute, uint64_t request)
{
    struct guest_call *c = &guest_self()->call;
    struct guest_timespec t;

    if (!emu_live())
        return;
    if (absolute)
        c->deadline = times_real_deadline(clock, request);
    else if (guest_read(request, &t, sizeof(t)) == 0)
        c->deadline = emu_now() + times_ps(&t);
    if (c->deadline < 0)
        guest_away(0);
    else
        emu_doze(c->deadline - emu_now());
}

void times_sleep_leave(int64_t result)
{
    struct guest_thread *t = guest_self();
    int64_t before = emu_now();

    if (t->call.away) {
        guest_back(-1);
        return;
    }
    if (t->call.deadline < 0)
        return;
    emu_doze_end(result == 0);
    t->idle_ps += emu_now() - before;
    /* Those who have not come as far go first. */
    emu_settle();
}

void times_used(int who, uint64_t usage)
{
    struct guest_timespec user_and_system[2] = {{0, 0}, {0, 0}};
    int64_t ns;

    if (!emu_live() || (who != RUSAGE_SELF && who != RUSAGE_THREAD))
        return;
    ns = cpu_ns(who == RUSAGE_SELF ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID);
    user_and_system[0] = (struct guest_timespec){ns / NS_PER_S, ns % NS_PER_S / 1000};
    (void)guest_write(usage, user_and_system, sizeof(user_and_system));
}

void times_of_process(uint64_t tms)
{
    int64_t ns, user_and_system[2] = {0, 0};

    if (!emu_live() || tms == 0)
        return;
    ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    user_and_system[0] = ns / (NS_PER_S / sysconf(_SC_CLK_TCK));
    (void)guest_write(tms, user_and_system, sizeof(user_and_system));
}
