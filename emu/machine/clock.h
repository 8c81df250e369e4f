/* SPDX-License-Identifier: BSD-2-Clause
 * Virtual time of the threads of one machine, across processes.
 *
 * Every emulated thread has a clock of its own. A thread may run ahead of the last
 * active one by `lookahead` and no further: it sleeps until that one has come up.
 * So 20 emulated cores fit on 2 real ones, whatever else these do: a slow or loaded
 * machine makes a run longer, never different. There is no factor to choose.
 *
 * What threads share (CPUs, bandwidth) they book in the order of their virtual times,
 * by a fixed rule where these are equal: a thread that is to book waits until it is the
 * last one (emu_clock_turn). So bookings do not depend on who is faster in real time.
 *
 * A thread that blocks says so (away) and holds nobody up. One that blocks unseen (a
 * raw futex, a pipe, SIGSTOP, death by SIGKILL) is found by those who wait for it:
 * asleep, stopped or gone according to /proc, or busy for long without one call-out.
 * It is then marked away, and comes back with its next settling. Of these only one that
 * computed all the while makes times wrong; it is counted apart (lost_runs).
 *
 * The last active thread never waits, so there is no deadlock.
 *
 * An observer has no work of its own in virtual time, but something to do at a time of it
 * (a sampler's look, a decision). It says when, and the others get no further until it has
 * been there; it asks how far they are, at leisure. Nobody's time goes by an observer's, which may
 * lie far ahead, so the clock stands still while all the others are away. An observer that
 * blocks, or does not ask for long, is marked away like any other thread; only it is no
 * loss. */
#ifndef EMU_CLOCK_H
#define EMU_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EMU_THREADS 1024
/* In `wait_for`: threads of any process wait for it. */
#define EMU_SHARED_KEY ((uint64_t)1 << 63)

/*  free -> starting (by the creator) -> active <-> away -> free
 *                                       active -> free
 * Others change: starting, active -> away; away -> releasing -> active (emu_clock_release); and
 * any -> free (dead process). */
enum emu_thread_state { EMU_FREE, EMU_STARTING, EMU_ACTIVE, EMU_AWAY, EMU_RELEASING };

struct emu_clock_thread {
    _Alignas(64) _Atomic int32_t state;
    _Atomic int32_t pid, tid;
    _Atomic uint32_t turn;     /* futex: changes when the owner should look again */
    _Atomic uint32_t moves;    /* changes with every sign of life */
    _Atomic int64_t time;      /* virtual ps, set by the owner, or while releasing */
    _Atomic int64_t sleeps_to; /* waits until the last one has this time; NEVER: awake */
    _Atomic bool in_order;     /* ... and for being the last one itself */
    _Atomic int64_t waited;    /* until then it has waited for a CPU, the last time */
    _Atomic bool released;     /* `time` is what the releaser has set */
    _Atomic bool dozing;       /* asleep by its own wish: holds its time, is not blocked */
    _Atomic bool tells_waits;  /* ... all of them (emu_clock_waits_told) */
    _Atomic bool observes;     /* (emu_clock_observe) `dozing`: it has not been there yet */
    _Atomic uint64_t wait_for; /* away, or released, at this barrier; 0: elsewhere */
};

struct emu_clock {
    _Atomic int32_t used;       /* slots below this one have been in use */
    _Atomic int64_t newest;     /* the highest time published */
    _Atomic int64_t looked;     /* real ns: when somebody last looked into a thread */
    _Atomic uint64_t unseen;    /* threads found blocked without having said so */
    _Atomic uint64_t lost_runs; /* ... found computing for long without a call-out */
    struct emu_clock_thread thread[EMU_THREADS];
};

/* The front end of this process tells of every wait: who is found blocked all the same waits
 * inside the emulator. It is given more time before it is marked away, and that wait
 * takes no virtual time. Before the first join. */
extern bool emu_clock_waits_told;

/* A slot for the calling process, in state starting at `start`. -EAGAIN: all taken. */
int emu_clock_join(struct emu_clock *c, int64_t start, int *ret_slot);
/* The thread that will use the slot, in its own context. */
void emu_clock_begin(struct emu_clock *c, int slot);
void emu_clock_leave(struct emu_clock *c, int slot);
/* Sleep until no active thread is before this one. Keeps errno. The time to go on
 * from, as below. */
int64_t emu_clock_turn(struct emu_clock *c, int slot, int64_t time);
/* Publish the time; sleep while too far ahead. The time to go on from: `time`, or
 * later if the thread had been found blocked meanwhile. Keeps errno. */
int64_t emu_clock_advance(struct emu_clock *c, int slot, int64_t time, int64_t lookahead);
/* Before and after blocking in something. The time after: max(time, known), and
 * when what was waited for has no clock (known < 0), not before the last active one. */
void emu_clock_away(struct emu_clock *c, int slot, uint64_t wait_for);
int64_t emu_clock_back(struct emu_clock *c, int slot, int64_t time, int64_t known);
/* Threads of this process (of any: EMU_SHARED_KEY) that are away at `wait_for` with an
 * earlier time go on at `time`: whoever wakes first must not run on as if the others were
 * not there. */
void emu_clock_release(struct emu_clock *c, uint64_t wait_for, int64_t time, int most);
/* Before and after a sleep of the thread's own wish, until `time`: others do not get
 * further than that meanwhile (and it needs no looking into). After: the time to go on
 * from, `time` or, if it was woken early, that of the others. */
void emu_clock_doze(struct emu_clock *c, int slot, int64_t time);
int64_t emu_clock_doze_end(struct emu_clock *c, int slot, int64_t before, bool early);
/* A slot for the calling thread as an observer at `time`; -EAGAIN. It ends by leave. */
int emu_clock_observe(struct emu_clock *c, int64_t time, int *ret_slot);
/* The slot's owner is an observer from now on, with something to do at `time`. */
void emu_clock_turn_observer(struct emu_clock *c, int slot, int64_t time);
/* The others get no further than this until the next such call. */
void emu_clock_hold(struct emu_clock *c, int slot, int64_t time);
/* The time of the others, but not past the one that is held; once they are there it is that
 * one. Never waits. */
int64_t emu_clock_held(struct emu_clock *c, int slot);
/* Is the slot still the calling thread's (of number `tid`), after all that may have been? */
bool emu_clock_mine(const struct emu_clock *c, int slot, int tid);
/* While anybody in this process has it on, none of its threads waits for the times of others: for
 * a moment in which they must get on for another reason. Off again in a forked child. */
void emu_clock_rush(struct emu_clock *c, bool on);
void emu_clock_rush_forked(void);
/* Free the slots of a process that is no more. */
void emu_clock_forget(struct emu_clock *c, int pid);
/* The least time of an active thread that is no observer; `newest` when there is none. */
int64_t emu_clock_floor(struct emu_clock *c);

#endif
