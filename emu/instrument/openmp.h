/* SPDX-License-Identifier: BSD-2-Clause
 * What the wrappers of libgomp share: the team that a thread is in, and waits in which
 * libgomp may run tasks. */
#ifndef EMU_OPENMP_H
#define EMU_OPENMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Lives on the stack of the thread that opened the region. */
struct emu_team {
    void *reductions; /* first: where libgomp looks for the list of them */
    void (*run)(void *);
    void *arg;
    int64_t begin;
    struct emu_team *outer;
    uint64_t dock; /* what its members wait for between regions */
    /* Clocks: members done, barrier passed, tasks done, ordered part done. */
    _Atomic int64_t end, barrier, tasks, ordered;
};

/* Never NULL. */
struct emu_team *emu_my_team(void);
void emu_raise(_Atomic int64_t *clock);
/* Around a wait inside libgomp. */
void emu_wait_begins(uint64_t key);
void emu_wait_ends(int64_t known);
/* Around a task: inside such a wait the thread comes back for it. `not_before`: the time
 * at which the task was made. */
bool emu_task_begins(int64_t not_before);
void emu_task_ends(bool was_waiting);

#endif
