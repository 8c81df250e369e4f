/* SPDX-License-Identifier: BSD-2-Clause
 * A thread of the guest, and its memory. Threads of the guest are threads of this process
 * with the same numbers, and descriptors are the same as well. */
#ifndef EMU_QEMU_GUEST_H
#define EMU_QEMU_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"

/* What the system call that the thread is in leaves for its return. */
struct guest_call {
    uint64_t arg[6];
    bool away;        /* counts as blocked: emu_away was called */
    long switches;    /* voluntary context switches before */
    int64_t deadline; /* virtual ps of a timeout or of a sleep's end; -1: none */
    uint64_t key;     /* futex that is waited for; 0: none */
    uint64_t patched; /* address of what the call saw changed; 0: nothing */
    size_t patched_bytes;
    unsigned char saved[128];
    int slot;     /* of the thread to be created; -1: none */
    bool rushes;  /* a fork: emu_rush was called */
    bool creates; /* ... of a thread, which forks wait for */
};

struct guest_thread {
    struct emu_thread core; /* first: emu_self_pointer points here */
    struct guest_call call;
    uint64_t clear_tid; /* the futex that is woken when the thread ends */
    int64_t idle_ps, born_ps;
    unsigned vcpu;
};

static inline struct guest_thread *guest_self(void)
{
    return (struct guest_thread *)emu_self_pointer;
}

/* 0 or -EFAULT, without a signal. */
int guest_read(uint64_t address, void *to, size_t bytes);
int guest_write(uint64_t address, const void *from, size_t bytes);
/* For the duration of the system call, `bytes` (at most sizeof saved) of guest memory
 * are changed; guest_unpatch puts them back. -EFAULT: read-only, say. */
int guest_patch(uint64_t address, const void *with, size_t bytes);
void guest_unpatch(void);

/* Blocking: the others need not wait for this thread. */
void guest_away(uint64_t wait_for);
/* After guest_away: on from virtual time `known`, or, when that is -1, from the thread's own
 * time if the call did not block, and from the time of the slowest thread if it did. */
void guest_back(int64_t known);

#endif
