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

#define EMU_LIKELY(x) __builtin_expect(!!(x), 1)
/* `left` is a budget in ps above these bits; below them accesses are counted up. */
#define EMU_COUNT_BITS 24
#define EMU_STREAMS    16

struct emu_thread {
    struct emu_l1 l1;
    int64_t left, granted;
    int64_t stall_ps; /* part of the batch's budget that went to stalls */
    int64_t now;      /* virtual ps at the batch's start */
    uintptr_t inside; /* stack address of the call that is in the core; 0: none */
    int slot;
    enum { EMU_T_NEW, EMU_T_LIVE, EMU_T_OFF } mode;
    struct emu_batch batch;
    uint32_t reads[EMU_TIERS], writebacks[EMU_TIERS], l1_misses, dependent, streamed;
    uint64_t stream[EMU_STREAMS]; /* latest line of each stream */
    uint64_t word[2][8];          /* contents of the last two lines missed by loads */
    unsigned next_stream, next_word;
};

extern __thread struct emu_thread emu_self __attribute__((tls_model("initial-exec")));
extern int64_t emu_access_step, emu_block_step;

/* Once; afterwards threads are emulated. Adopts the calling thread. 0 or -errno. */
int emu_core_start(const char *machine_path, const struct emu_params *p);
/* No thread is emulated any more; the process' counts as they are. The machine stays
 * mapped: threads may still be in it. */
void emu_core_stop(uint64_t ret_count[EMU_COUNTER_COUNT], int64_t *ret_virtual_ps,
                   uint64_t *ret_unseen);
bool emu_core_running(void);
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
/* Settle if more than a little has gathered: before the thread is seen by others. */
void emu_settle_debt(void);
/* The calling thread's time, without settling. */
int64_t emu_now(void);
/* Go on not before this time. */
void emu_catch_up(int64_t ps);
/* Around anything that may block. `known`: the time of what was waited for, or -1. */
void emu_away(uint64_t wait_for);
void emu_back(int64_t known);
void emu_release(uint64_t wait_for, int64_t ps);

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
