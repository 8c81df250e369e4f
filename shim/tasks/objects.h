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
    uint64_t told; /* length, 0: not told */
    uintptr_t base;
    uint32_t pages, dram; /* whole pages; of them on DRAM when last asked or moved */
    bool measured;
    uint32_t staged;               /* pages of `dram` that came for a task */
    uint64_t asked_ns, changed_ns; /* where they are; when that changed last */
    uint64_t used;                 /* number of the last task that ended with it */
};

struct objects { /* zeros at first */
    unsigned n;
    struct object object[OBJECTS_MOST];
    uint16_t order[OBJECTS_MOST]; /* by address */
};

/* Number of the object at this address, a new one if need be; OBJECT_NONE: too many. */
unsigned objects_at(struct objects *o, uintptr_t address, uint64_t told);
/* Its extent, as the heap is now. `dram` is not known afterwards if it has changed. */
void objects_measure(struct objects *o, unsigned i);

#endif
