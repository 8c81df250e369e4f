/* SPDX-License-Identifier: BSD-2-Clause
 * What the files share that make up the core: core.c (accesses and batches), threads.c (their
 * life and waits), process.c (coming to the machine and leaving it), kernel.c (pages that
 * leave the caches or move). Nobody else includes it. */
#ifndef EMU_INSIDE_H
#define EMU_INSIDE_H

#include "core/core.h"

#define EMU_FIX(ps)    ((int64_t)((uint64_t)(ps) << EMU_COUNT_BITS))
#define EMU_COUNT_MASK (((int64_t)1 << EMU_COUNT_BITS) - 1)
#define EMU_UNLIMITED  (INT64_MAX / 2)
/* A budget after which a thread looks whether its process has come to a machine. */
#define EMU_LOOK_AGAIN EMU_FIX(1000000)
#define EMU_PAGE_LINES 64u

struct emu_core {
    struct emu_machine *machine;
    struct emu_process *process;
    struct emu_llc llc;
    struct emu_costs costs;
    struct emu_params params;
    const char *machine_path;
    int64_t core_mw; /* of a core that runs, at its clock */
    uint64_t unseen_before, lost_before, salt;
    _Atomic bool running;
};

extern struct emu_core emu_core __attribute__((visibility("hidden")));

/* How a thread settles: */
enum emu_settle_how {
    SETTLE_ORDERED, /* books when it is the last one */
    SETTLE_LEAVING, /* ... and gives up its CPU */
    SETTLE_DEBT,    /* often and little: books at once */
    SETTLE_NOW,     /* ... and does not wait for slower threads */
};

static inline void emu_add(enum emu_counter c, uint64_t v)
{
    if (v)
        atomic_fetch_add_explicit(&emu_core.process->count[c], v, memory_order_relaxed);
}

/* Into the core; false: this thread is in it already. A handler's frame lies below
 * the call that it interrupts; one above means that somebody has jumped out (longjmp). */
static inline bool emu_enter(struct emu_thread *t)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (t->inside != 0 && frame < t->inside)
        return false;
    t->inside = frame;
    return true;
}

static inline void emu_leave(struct emu_thread *t)
{
    t->inside = 0;
}

static inline void emu_switch_off(struct emu_thread *t)
{
    t->mode = EMU_T_OFF;
    t->left = t->granted = EMU_UNLIMITED;
}

static inline int64_t emu_spent_ps(const struct emu_thread *t)
{
    return (t->granted - t->left + EMU_COUNT_MASK) >> EMU_COUNT_BITS;
}

/* Settles thread `t`, which is in the core; or the calling thread, if it is emulated. */
void emu_settle_inside(struct emu_thread *t, enum emu_settle_how how);
void emu_settle_as(enum emu_settle_how how);
void emu_new_batch(struct emu_thread *t);
/* Page faults are charged from here on. */
void emu_faults_begin(struct emu_thread *t);
/* threads.c */
void emu_go_live(struct emu_thread *t, int slot, int64_t now);
void emu_adopt(struct emu_thread *t);
int emu_take_slot(int64_t now, const struct emu_cpuset *allowed, int *ret_slot);
/* kernel.c: pages that others have moved are not in this thread's L1 any more. */
void emu_drop_moved(struct emu_thread *t);

#endif
