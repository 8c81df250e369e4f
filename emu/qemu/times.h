/* SPDX-License-Identifier: BSD-2-Clause
 * The guest's clocks show virtual time, and a sleep or timeout takes its virtual length:
 * a thread that sleeps does so for the real length as well, and the others get no further
 * than the end of the virtual one. A deadline on one of these clocks is told to the kernel in real
 * time. */
#ifndef EMU_QEMU_TIMES_H
#define EMU_QEMU_TIMES_H

#include <stdbool.h>
#include <stdint.h>

/* The guest's struct timespec and timeval. */
struct guest_timespec {
    int64_t sec, nsec;
};

int64_t times_ps(const struct guest_timespec *t);
/* The timespec at `address` is a deadline on this clock: for the call it is changed to the
 * same distance on the kernel's clock. The deadline in virtual ps; -1: not known. */
int64_t times_real_deadline(int clock, uint64_t address);

/* clock_gettime, gettimeofday have returned: what they wrote is changed. */
void times_clock_read(int clock, uint64_t timespec);
void times_of_day_read(uint64_t timeval);
/* getrusage (of the children: as they are), times: processor time is virtual, and all of it
 * the user's. */
void times_used(int who, uint64_t usage);
void times_of_process(uint64_t tms);
/* nanosleep (`absolute` false), clock_nanosleep. */
void times_sleep_enter(int clock, bool absolute, uint64_t request);
void times_sleep_leave(int64_t result);

#endif
