/* SPDX-License-Identifier: BSD-2-Clause
 * The tasks that were made and have not ended, with what they depend on, as far as it was told;
 * from it, which ones start next (paper 003, III.A: the queue of ready tasks, which the runtimes do
 * not show). Events may come in another order than things happened, and some never. Pure. */
#ifndef HYBRID_TASKS_RULES_SHADOW_H
#define HYBRID_TASKS_RULES_SHADOW_H

#include "base/types.h"

#define SHADOW_TASKS   8192u /* the youngest: programs may make all of theirs at once */
#define SHADOW_LOOK    512u  /* of them, the oldest: among those are the next */
#define SHADOW_NEEDS   8u
#define SHADOW_OBJECTS 4096u
#define SHADOW_LEVELS  16u

struct shadow_need {
    uint16_t object; /* below SHADOW_OBJECTS */
    bool writes;
};

enum shadow_state { SHADOW_NONE, SHADOW_WAITS, SHADOW_RUNS, SHADOW_DONE };

struct shadow_task {
    uint64_t id, began; /* ns */
    uint16_t function;
    uint8_t state, needs;
    bool created; /* that it was made */
    struct shadow_need need[SHADOW_NEEDS];
};

/* Which of the waiting tasks a runtime takes next: the oldest that are ready (libgomp), or those
 * that wait for one that runs or has just ended, as its thread goes on with them (libomp). */
enum shadow_order { SHADOW_OLDEST, SHADOW_FOLLOWS, SHADOW_ORDERS };
#define SHADOW_NEXT 32u /* are foreseen, at most */

struct shadow {                            /* zeros at first */
    struct shadow_task task[SHADOW_TASKS]; /* by id */
    uint64_t first, newest;                /* below `first` none is left */
    unsigned running, waiting, looked;
    uint64_t look[SHADOW_LOOK]; /* ids, as of the last shadow_next */
    uint8_t level[SHADOW_LOOK], wrote[SHADOW_OBJECTS], used[SHADOW_OBJECTS], runs[SHADOW_OBJECTS];
    bool released[SHADOW_OBJECTS]; /* by a task that ended, and no other has begun with it since */
    uint64_t foreseen[SHADOW_ORDERS][SHADOW_NEXT]; /* by each order, as of then */
    unsigned n_foreseen[SHADOW_ORDERS];
    double right[SHADOW_ORDERS]; /* tasks that began and were foreseen, of late */
};

void shadow_made(struct shadow *s, uint64_t id, unsigned function, const struct shadow_need *need,
                 unsigned n);
void shadow_began(struct shadow *s, uint64_t id, uint64_t ns);
/* Copies the task; false: nothing is known of it, or not when it began. */
bool shadow_ended(struct shadow *s, uint64_t id, struct shadow_task *ret);
/* Some news were lost: who is believed to run may have ended long ago. */
void shadow_lost(struct shadow *s);
struct shadow_task *shadow_find(struct shadow *s, uint64_t id);
/* The next `k` to start, SHADOW_NEXT at most, by the order that was right more often: the oldest of
 * those that are ready, then those that wait for a running one, and so on; or all that follow one
 * that runs or has just ended first. Returns how many ids. */
unsigned shadow_next(struct shadow *s, uint64_t *ret_ids, unsigned k);

#endif
