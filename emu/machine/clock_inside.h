/* SPDX-License-Identifier: BSD-2-Clause
 * What clock.c (times and waits) and clock_look.c (is who is waited for blocked, or dead?) share.
 */
#ifndef EMU_CLOCK_INSIDE_H
#define EMU_CLOCK_INSIDE_H

#include <time.h>

#include "machine/clock.h"

#define EMU_NEVER INT64_MAX
/* A wait is looked into after this long; normal ones last some 0.1 ms. */
#define EMU_LOOK_NS 2000000

static inline int64_t emu_clock_get(_Atomic int64_t *p)
{
    return atomic_load(p);
}

static inline int64_t emu_clock_real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline bool emu_clock_holds_up(struct emu_clock_thread *t)
{
    int32_t s = atomic_load(&t->state);
    return s == EMU_ACTIVE || s == EMU_STARTING;
}

static inline void emu_clock_set_free(struct emu_clock_thread *t)
{
    atomic_store(&t->sleeps_to, EMU_NEVER);
    atomic_store(&t->state, EMU_FREE);
}

void emu_clock_wake(struct emu_clock_thread *t);
/* After every change of times or states: wake whose wait is over. */
void emu_clock_wake_others(struct emu_clock *c);

/* What one waiter knows of the thread that it waits for. */
struct emu_clock_watch {
    int slot;
    uint32_t moves;
    long last_ticks, ran_ticks;
    int64_t last_ns, waited_ns;
};

/* A wait for the thread in slot `last` has timed out. Of all who wait, one looks at a time. */
void emu_clock_look(struct emu_clock *c, int last, struct emu_clock_watch *w);

#endif
