/* SPDX-License-Identifier: BSD-2-Clause
 * What a front end drives: every access of a thread goes through emu_touch, every
 * piece of computation through emu_compute. A thread gathers costs for a batch of
 * about 20 us virtual time and then settles: it books bandwidth, publishes its time
 * and waits for slower threads (clock.h).
 *
 * Code here runs inside the program at any point, signal handlers included: no
 * allocation, no stdio, errno is kept. Accesses made while the same thread is in
 * here (a handler that interrupts it) pass uncounted. */
#ifndef EMU_CORE_H
#define EMU_CORE_H

#include "machine/machine.h"
#include "model/misses.h"

#define EMU_LIKELY(x) __builtin_expect(!!(x), 1)
/* `left` is a budget in ps above these bits; below them accesses are counted up. */
#define EMU_COUNT_BITS 24

struct emu_thread {
    struct emu_l1 l1;
    int64_t left, granted;
    int64_t stall_ps;    /* part of the batch's budget that went to stalls */
    int64_t cache_ps;    /* of these, for hits in the LLC */
    int64_t move_ps;     /* ... and to moving pages */
    int64_t faults;      /* page faults of the kernel's thread until the last settling */
    uint32_t moves_seen; /* pages whose lines were dropped here after a move */
    int64_t now;         /* virtual ps at the batch's start */
    uintptr_t inside;    /* stack address of the call that is in the core; 0: none */
    int slot;
    enum { EMU_T_NEW, EMU_T_LIVE, EMU_T_OFF } mode;
    int observes;   /* the kernel's number of an observer (clock.h) with `slot`; 0: none */
    bool told_away; /* by pmemu_away: waits on the way to pmemu_back change no clock */
    struct emu_batch batch;
    uint32_t reads[EMU_TIERS], writebacks[EMU_TIERS], l1_misses, dependent, streamed;
    uint64_t instructions; /* of the batch, if the front end counts them; else estimated */
    struct emu_history history;
};

/* A front end that is opened by dlopen finds no room for the struct in the initial TLS. */
#ifdef EMU_SELF_POINTER
extern __thread struct emu_thread *emu_self_pointer __attribute__((tls_model("initial-exec")));
#define emu_self (*emu_self_pointer)
#else
extern __thread struct emu_thread emu_self __attribute__((tls_model("initial-exec")));
#endif
extern int64_t emu_access_step, emu_block_step;

/* Once; afterwards threads are emulated, on cores of that clock. Adopts the calling thread. 0 or
 * -errno. */
int emu_core_start(const char *machine_path, const struct emu_params *p, unsigned mhz);
/* What a process has done and what happened to it. */
struct emu_result {
    uint64_t count[EMU_COUNTER_COUNT];
    int64_t virtual_ps;
    /* On the machine, while it was there (clock.h): */
    uint64_t unseen_blocks, lost_runs;
};
/* No thread is emulated any more. The machine stays mapped: threads may still be in it. */
void emu_core_stop(struct emu_result *ret);
/* After a stop: this process comes back with the calling thread, the others follow. */
int emu_core_restart(void);
/* Not so in a child that nobody told of the fork (vfork, clone). */
bool emu_core_ours(void);
bool emu_core_running(void);
/* Is this address within the machine's state? */
bool emu_core_has(const void *address);
/* Accesses and basic blocks of this process take that many 1000ths of a percent of what
 * the machine's parameters say: how many instructions each stands for is a program's. */
void emu_core_compute(int64_t milli);
/* From now on this process fills so many ways of the LLC only, 1 to EMU_LLC_WAYS; children of a
 * fork do so, too. */
void emu_core_fill_ways(unsigned ways);
/* As they are for this process: at the clock of its cores. */
const struct emu_params *emu_core_params(void);
/* In the child of a fork. */
void emu_core_forked(void);

/* A slot for a thread to be created, at the caller's present time; -errno. */
int emu_thread_prepare(void);
void emu_thread_abandon(int slot);
/* In the new thread. */
void emu_thread_begin(int slot, int64_t now);
void emu_thread_end(void);

void emu_touch_slow(uintptr_t address, unsigned write);
void emu_budget_spent(void);
void emu_settle(void);
/* The same, and the turn on the CPU is over. */
void emu_settle_and_yield(void);
/* The same, but never waits for slower threads: with a lock held. */
void emu_settle_now(void);
/* Settle if more than a little has gathered: before the thread is seen by others. */
void emu_settle_debt(void);
/* The same, and in the order of virtual times: who is first there gets the next piece of
 * work. */
void emu_settle_debt_ordered(void);
/* The calling thread's time, without settling. */
int64_t emu_now(void);
/* Go on not before this time. */
void emu_catch_up(int64_t ps);
/* Around anything that may block. `known`: the time of what was waited for, or -1. */
void emu_away(uint64_t wait_for);
void emu_back(int64_t known);
void emu_release(uint64_t wait_for, int64_t ps);
/* At most `n` of those that wait. */
void emu_release_some(uint64_t wait_for, int64_t ps, int n);
/* While on (calls nest), no thread of this process waits for others' time. */
void emu_rush(bool on);
/* Around a sleep that the thread asks for. `whole`: it was not woken early. */
void emu_doze(int64_t ps);
void emu_doze_end(bool whole);

/* The calling thread has no virtual time from here on. */
void emu_thread_ignore(void);
/* The calling thread becomes an observer (clock.h), or goes on as one, with something to do at
 * this time; it has no virtual time but that. ps < 0: it is none any more. */
int emu_observe(int64_t ps);
/* Its time; < 0: it is no observer. */
int64_t emu_observed(void);
/* Such a thread takes part for a while: true if it has to end its visit. */
bool emu_visit(void);
void emu_visit_end(void);

/* --- for the other files of core/ ------------------------------------------ */

/* NULL while the process is on no machine. */
struct emu_machine *emu_core_machine(void);
struct emu_process *emu_core_process(void);
const char *emu_core_machine_path(void);
const struct emu_costs *emu_core_costs(void);
void emu_count(enum emu_counter c, uint64_t v);
/* The lines of a page leave the caches; `moved`: the other threads' L1, too. */
void emu_drop_page(uint64_t page_address, bool moved);
/* The calling thread has moved the page from one medium to the other (pages.h). */
void emu_charge_move(uint64_t page_address, enum emu_tier from);
/* Time of the calling thread in the kernel. */
void emu_charge_kernel(int64_t ps);

static inline bool emu_live(void)
{
    return emu_self.mode == EMU_T_LIVE;
}

static inline __attribute__((always_inline)) void emu_touch(const volatile void *a, unsigned write)
{
    uint64_t line = (uintptr_t)a >> EMU_LINE_SHIFT;
    if (EMU_LIKELY((emu_self.left -= emu_access_step) >= 0 &&
                   emu_l1_quick(&emu_self.l1, line, write)))
        return;
    emu_touch_slow((uintptr_t)a, write);
}

/* An access of `n` bytes at any alignment: one for each line. */
void emu_touch_range(const volatile void *a, uint64_t n, unsigned write);

static inline void emu_compute(void)
{
    if (!EMU_LIKELY((emu_self.left -= emu_block_step) >= 0))
        emu_budget_spent();
}

#endif
