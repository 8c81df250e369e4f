/* SPDX-License-Identifier: BSD-2-Clause
 * The data that tasks name: addresses of dependences, how far each reaches, where its pages are. A
 * runtime that tells a length of a page or more is believed; else an object reaches to the end of
 * its heap block, or to the next address in it that a dependence has named. Only whole pages of
 * large blocks of our heaps count. All by the pages' thread. */
#ifndef HYBRID_TASKS_OBJECTS_H
#define HYBRID_TASKS_OBJECTS_H

#include "base/types.h"

#define OBJECTS_MOST 4096u
#define OBJECT_NONE  0xffffu

struct object {
    uintptr_t address;
    uint64_t length; /* length, 0: not told */
    uintptr_t base;
    uint32_t pages, dram; /* whole pages; of them on DRAM when last asked or moved */
    bool measured;
    uint32_t staged;               /* pages of `dram` that came for a task */
    int32_t more;                  /* pages of `dram` by all that came and went for tasks */
    uint64_t asked_ns, changed_ns; /* where they are; when that changed last */
    uint64_t carried_ns;           /* when others than tasks changed that */
    uint64_t used;                 /* how many tasks had ended when the last one with it did */
};

struct objects { /* zeros at first */
    unsigned n;
    struct object object[OBJECTS_MOST];
    uint16_t order[OBJECTS_MOST]; /* by address */
};

/* Number of the object at this address, a new one if need be; OBJECT_NONE: too many. */
unsigned objects_at(struct objects *o, uintptr_t address, uint64_t length);
/* On which tier OBJECTS_ASK pages at most are, -1: on none. 0 or -errno. */
#define OBJECTS_ASK 512u
typedef int objects_where_fn(void *base, unsigned pages, int8_t *ret_tier);
/* Its extent as the heap is now, and how much of it is on DRAM, where that was last seen more than
 * `old_ns` ago or never. Where `where` fails, `dram` stays as it was. */
void objects_look(struct objects *o, unsigned i, uint64_t old_ns, uint64_t now_ns,
                  objects_where_fn *where);

#endif
