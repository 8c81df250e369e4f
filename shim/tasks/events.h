/* SPDX-License-Identifier: BSD-2-Clause
 * What OpenMP tasks of the program tell: made, with what data, begun, ended. Threads of the program
 * write events into rings without a lock and without a wait; what does not fit is dropped and
 * counted. The pages' thread reads them. While nobody watches, there is no memory for it and a
 * task costs one test. Watched are tasks with dependences only (paper 003, III.B: these name
 * the data). Times are of the machine's clock where it is emulated. */
#ifndef HYBRID_TASKS_EVENTS_H
#define HYBRID_TASKS_EVENTS_H

#include "base/types.h"
#include "sys/walk/modules.h"

#define TASK_NEEDS_MOST 8u /* dependences of a task that is watched */
#define TASK_FUNCTIONS  64u

enum task_event_kind { TASK_MADE, TASK_NEEDS, TASK_BEGAN, TASK_ENDED };

struct task_event {
    uint64_t id;    /* from 1; later ones are larger */
    uint64_t value; /* NEEDS: address; BEGAN, ENDED: time in ns */
    uint64_t bytes; /* NEEDS: length, 0: not told; MADE: how many NEEDS follow */
    uint16_t function;
    uint8_t kind;
    bool writes; /* NEEDS */
};

struct task_need {
    uintptr_t address;
    uint64_t bytes; /* 0: not told */
    bool writes;
};

/* --- by threads of the program ------------------------------------------------------- */

extern HY_HIDDEN uint32_t hy_tasks_watched;
static inline bool tasks_watched(void)
{
    return HY_UNLIKELY(__atomic_load_n(&hy_tasks_watched, __ATOMIC_RELAXED) != 0);
}
/* Number of a task's function, from 1; 0: its tasks are not watched (any more). */
unsigned tasks_function(const void *fn);
/* A task is made: its id; 0: there was no room, and it is not watched. */
uint64_t tasks_made(unsigned function, const struct task_need *need, unsigned n);
void tasks_began(uint64_t id);
void tasks_ended(uint64_t id);

/* --- by the pages' thread -------------------------------------------------------------- */

void tasks_open(void);
void tasks_close(void);
/* The same, in a child of fork. */
void tasks_child(void);
/* Hands over what came since the last call; events of one thread in their order. Returns how
 * many. */
unsigned tasks_drain(void (*fn)(void *ctx, const struct task_event *e), void *ctx);
/* Tasks of this function are no longer watched. */
void tasks_drop_function(unsigned function);
/* Any so far? */
bool tasks_told(void);
uint64_t tasks_dropped(void); /* events */
/* A loop of tasks was met; how many were. */
void tasks_loop(void);
uint64_t tasks_loops(void);
/* Which code it is; -ENOENT. */
int tasks_code(unsigned function, struct module *ret, uintptr_t *ret_offset);

#endif
