/* SPDX-License-Identifier: BSD-2-Clause
 * CPUs and affinity. See affinity.h. */
#include "program/affinity.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"

/* A short system call [estimate]. Also keeps loops of sched_yield from crawling. */
#define SYSCALL_PS 400000

void emu_cpu_leave_turn(void)
{
    emu_charge_kernel(SYSCALL_PS);
    emu_settle_and_yield();
}

int emu_cpu_current(void)
{
    struct emu_machine *m = emu_core_machine();
    const struct emu_cpuset *set = emu_affinity_at_start();

    if (m && emu_live())
        return emu_cpus_current(&m->cpus, &m->cpu_user[emu_self.slot]);
    for (int i = 0; i < EMU_CPUS_WORDS; i++)
        if (set->bits[i])
            return i * 64 + __builtin_ctzll(set->bits[i]);
    return 0;
}

/* The slot of thread `tid`; -1: none, or none yet if one of this process is starting. */
static int find(struct emu_machine *m, int tid, bool *ret_starting)
{
    int n = atomic_load(&m->clock.used), pid = getpid();
    *ret_starting = false;
    for (int i = 0; i < n; i++) {
        struct emu_clock_thread *t = &m->clock.thread[i];
        int state = atomic_load(&t->state);
        if (state != EMU_FREE && atomic_load(&t->tid) == tid)
            return i;
        if (state == EMU_STARTING && atomic_load(&t->pid) == pid)
            *ret_starting = true;
    }
    return -1;
}

/* The calling thread is known without a search. One that was just created may not have
 * told its number: it will in no time. */
static int slot_of(struct emu_machine *m, int tid)
{
    const struct timespec moment = {.tv_nsec = 50000};
    bool starting;

    if (tid == 0 && emu_live())
        return emu_self.slot;
    if (tid == 0)
        tid = (int)syscall(SYS_gettid);
    for (int tries = 0;; tries++) {
        int slot = find(m, tid, &starting);
        if (slot >= 0 || !starting || tries >= 2000)
            return slot;
        syscall(SYS_nanosleep, &moment, NULL);
    }
}

int emu_affinity_get(int tid, struct emu_cpuset *ret)
{
    struct emu_machine *m = emu_core_machine();
    int slot = m ? slot_of(m, tid) : -1;
    if (slot < 0)
        return -ESRCH;
    emu_cpus_allowed(&m->cpu_user[slot], ret);
    return 0;
}

int emu_affinity_set(int tid, const struct emu_cpuset *s)
{
    struct emu_machine *m = emu_core_machine();
    int slot = m ? slot_of(m, tid) : -1;
    if (!m && tid == 0)
        emu_affinity_start_with(s);
    if (slot < 0)
        return m ? -ESRCH : 0;
    return emu_cpus_allow(&m->cpus, &m->cpu_user[slot], s);
}

int emu_affinity_prepared(int slot, const struct emu_cpuset *s)
{
    struct emu_machine *m = emu_core_machine();
    return m ? emu_cpus_allow(&m->cpus, &m->cpu_user[slot], s) : 0;
}
