/* SPDX-License-Identifier: BSD-2-Clause
 * Virtual time of the threads of one machine, across processes.
 *
 * Every emulated thread has a clock of its own. A thread may run ahead of the last
 * active one by `lookahead` and no further: it sleeps until that one has come up.
 * So 20 emulated cores fit on 2 real ones, whatever else these do: a slow or loaded
 * machine makes a run longer, never different. There is no factor to choose.
 *
 * A thread that blocks says so (away) and holds nobody up. One that blocks unseen (a
 * raw futex, a pipe, SIGSTOP, death by SIGKILL) is found by those who wait for it:
 * asleep, stopped or gone according to /proc, or busy for long without one call-out.
 * It is then marked away, and comes back with its next settling.
 *
 * The last active thread never waits, so there is no deadlock. */
#ifndef EMU_CLOCK_H
#define EMU_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#define EMU_THREADS 1024

/*  free -> starting (by the creator) -> active <-> away -> free
 *                                       active -> free
 * Others change: active -> away and any -> free (dead process). */
enum emu_thread_state { EMU_FREE, EMU_STARTING, EMU_ACTIVE, EMU_AWAY };

struct emu_clock_thread {
    _Alignas(64) _Atomic int32_t state;
    _Atomic int32_t pid, tid;
    _Atomic uint32_t turn;     /* futex: changes when waiters should look again */
    _Atomic int64_t time;      /* virtual ps, set by the owner */
    _Atomic int64_t wake_at;   /* the least time that somebody waits for */
    _Atomic uint64_t wait_for; /* away at this barrier; 0: elsewhere */
};

struct emu_clock {
    _Atomic int32_t used;    /* slots below this one have been in use */
    _Atomic int64_t newest;  /* the highest time published */
    _Atomic uint64_t unseen; /* threads found blocked without having said so */
    struct emu_clock_thread thread[EMU_THREADS];
};

/* A slot for the calling process, in state starting at `start`. -EAGAIN: all taken. */
int emu_clock_join(struct emu_clock *c, int64_t start, int *ret_slot);
/* The thread that will use the slot, in its own context. */
void emu_clock_begin(struct emu_clock *c, int slot);
void emu_clock_leave(struct emu_clock *c, int slot);
/* Publish the time; sleep while too far ahead. The time to go on from: `time`, or
 * later if the thread had been found blocked meanwhile. Keeps errno. */
int64_t emu_clock_advance(struct emu_clock *c, int slot, int64_t time, int64_t lookahead);
/* Before and after blocking in something. The time after: max(time, known), and
 * when what was waited for has no clock (known < 0), not before the last active one. */
void emu_clock_away(struct emu_clock *c, int slot, uint64_t wait_for);
int64_t emu_clock_back(struct emu_clock *c, int slot, int64_t time, int64_t known);
/* Threads of this process that are away at `wait_for` with an earlier time go on at
 * `time`: whoever wakes first must not run on as if the others were not there. */
void emu_clock_release(struct emu_clock *c, uint64_t wait_for, int64_t time);
/* Free the slots of a process that is no more. */
void emu_clock_forget(struct emu_clock *c, int pid);
/* The least time of an active thread; `newest` when there is none. */
int64_t emu_clock_floor(struct emu_clock *c);

#endif
