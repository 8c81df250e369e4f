/* SPDX-License-Identifier: BSD-2-Clause
 * Threads of the guest. See threads.h. */
#include "qemu/threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qemu/cpu_table.h"
#include "qemu/futex.h"
#include "qemu/guest.h"

/* Threads between clone and their first block, found by the virtual CPU's number. */
#define BIRTHS 4096
#define ENDS   1024  /* threads on their way out; more: the later ones are not waited for */
#define TRIES  20000 /* of 0.1 ms at least */

static struct birth {
    _Atomic uint32_t vcpu; /* number + 1; 0: none */
    int slot;
    int64_t now;
    uint64_t clear_tid;
} births[BIRTHS];
static _Atomic int unborn, creating, forking;
static _Atomic int32_t ending[ENDS]; /* numbers of threads, 0: free */

static struct guest_thread first;
/* Who has no struct of his own: a new thread before its first block (its budget is spent
 * from the outset, so that the block leads here), and one that is not emulated. */
static struct guest_thread nobody = {.core = {.left = -1}};

__thread struct emu_thread *emu_self_pointer = &nobody.core;

void threads_start(void)
{
    emu_self_pointer = &first.core;
    first.call.slot = -1; /* its virtual CPU is made by no clone */
}

void threads_vcpu_made(unsigned vcpu)
{
    struct guest_thread *t = guest_self();
    struct birth *b = &births[vcpu % BIRTHS];

    cpu_table_vcpu_made(vcpu);
    if (t == &nobody || t->call.slot < 0)
        return;
    b->slot = t->call.slot;
    b->now = emu_now();
    b->clear_tid = t->call.arg[0] & CLONE_CHILD_CLEARTID ? t->call.arg[3] : 0;
    atomic_fetch_add(&unborn, 1);
    atomic_store(&b->vcpu, vcpu + 1);
    t->call.key = vcpu + 1;
}

static struct guest_thread *new_thread(void)
{
    void *p = mmap(NULL, sizeof(struct guest_thread), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool threads_first_block(unsigned vcpu)
{
    struct birth *b = &births[vcpu % BIRTHS];
    uint32_t us = vcpu + 1;
    struct guest_thread *t;
    int slot = -1;

    if (guest_self() != &nobody)
        return false;
    t = new_thread();
    if (!t) /* uncounted; the budget of `nobody` leads here again and again */
        return true;
    t->vcpu = vcpu;
    emu_self_pointer = &t->core;
    if (atomic_load(&b->vcpu) == us) {
        slot = b->slot;
        t->born_ps = b->now;
        t->clear_tid = b->clear_tid;
        atomic_store(&b->vcpu, 0);
        atomic_fetch_sub(&unborn, 1);
    }
    if (slot >= 0)
        emu_thread_begin(slot, t->born_ps);
    else
        emu_budget_spent(); /* one that nobody announced */
    return true;
}

/* QEMU has a lock for its threads, which it takes in clone, before a thread's first block and when
 * one ends. A fork would leave it taken in the child for good, so forks wait until nobody is
 * about to take it, and meanwhile nobody begins to. */

static bool a_while(int *tries)
{
    const struct timespec t = {0, 100000};
    (void)nanosleep(&t, NULL);
    return ++*tries < TRIES;
}

static void wait_for_forks(_Atomic int *then)
{
    int tries = 0;

    for (;;) {
        while (atomic_load(&forking) > 0 && a_while(&tries))
            ;
        atomic_fetch_add(then, 1);
        if (atomic_load(&forking) == 0 || tries >= TRIES)
            return;
        atomic_fetch_sub(then, 1);
    }
}

/* Its number is free again when the kernel has ended it, behind all of QEMU's. */
static bool some_end(void)
{
    bool some = false;

    for (int i = 0; i < ENDS; i++) {
        int32_t tid = atomic_load(&ending[i]);
        if (tid == 0)
            continue;
        if (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
            some = true;
        else
            atomic_compare_exchange_strong(&ending[i], &tid, 0);
    }
    return some;
}

static void note_end(void)
{
    int32_t tid = (int32_t)syscall(SYS_gettid), none;

    for (int i = 0; i < ENDS; i++) {
        none = 0;
        if (atomic_compare_exchange_strong(&ending[i], &none, tid))
            return;
        if (syscall(SYS_tgkill, getpid(), none, 0) != 0 &&
            atomic_compare_exchange_strong(&ending[i], &none, tid))
            return;
    }
}

static void wait_for_threads(void)
{
    int tries = 0;

    while ((atomic_load(&unborn) > 0 || atomic_load(&creating) > 0 || some_end()) &&
           a_while(&tries))
        ;
}

void threads_clone_enter(uint64_t flags)
{
    struct guest_call *c = &guest_self()->call;

    emu_settle();
    /* QEMU makes a process of what shares memory until exec (vfork). */
    if ((flags & CLONE_VM) && !(flags & CLONE_VFORK)) {
        wait_for_forks(&creating);
        c->creates = true;
        c->slot = emu_thread_prepare();
        return;
    }
    /* Before it forks QEMU waits until all other threads have come out of guest code, also those
     * that wait there for this one's virtual time, or for one that QEMU does not let start. */
    emu_rush(true);
    c->rushes = true;
    atomic_fetch_add(&forking, 1);
    wait_for_threads();
}

void threads_clone_leave(int64_t result)
{
    struct guest_call *c = &guest_self()->call;

    if (c->rushes) {
        atomic_fetch_sub(&forking, 1);
        emu_rush(false);
    }
    c->rushes = false;
    if (c->creates)
        atomic_fetch_sub(&creating, 1);
    c->creates = false;
    if (result < 0 && c->slot >= 0)
        emu_thread_abandon(c->slot);
    if (result < 0 && c->key) {
        atomic_store(&births[(c->key - 1) % BIRTHS].vcpu, 0);
        atomic_fetch_sub(&unborn, 1);
    }
    c->slot = -1;
}

void threads_exit(void)
{
    struct guest_thread *t = guest_self();
    bool live = emu_live();

    if (live) {
        futex_thread_ends(t->clear_tid);
        emu_thread_end();
    }
    /* The first one does not end before the process does. */
    if (t != &first) {
        wait_for_forks(&creating);
        note_end();
        atomic_fetch_sub(&creating, 1);
    }
    if (!live)
        return;
    if (t != &first) {
        /* Nothing of this thread runs any more that could ask. */
        emu_self_pointer = &nobody.core;
        munmap(t, sizeof(*t));
    }
}

void threads_forked(void)
{
    memset(births, 0, sizeof(births));
    atomic_store(&unborn, 0);
    atomic_store(&creating, 0);
    atomic_store(&forking, 0);
    memset(ending, 0, sizeof(ending));
    guest_self()->call.rushes = false; /* that was the parent */
    cpu_table_forked(guest_self()->vcpu);
    futex_forked();
    emu_core_forked();
}
