/* SPDX-License-Identifier: BSD-2-Clause
 * The states of the library, and the table of allocation functions that the hooks call: it is
 * swapped as a whole. */
#ifndef HYBRID_CORE_STATE_H
#define HYBRID_CORE_STATE_H

#include "base/types.h"
#include "core/topology.h"
#include "sys/next.h"

/* Transitions go downwards only.
 *   BOOT      nothing is decided yet: the next allocator serves
 *   SERVING   our heap serves, all of it DRAM: the process is smaller than HYBRID_START
 *   STEERING  memory is placed
 *   PASSIVE   nothing to place in this process, for good
 *   ENDED     our destructor has run; whoever served goes on serving
 * Every change is a compare-and-exchange. */
enum hy_state { HY_BOOT, HY_SERVING, HY_STEERING, HY_PASSIVE, HY_ENDED };

extern HY_HIDDEN const struct alloc_ops *hy_ops; /* never NULL; read with runtime_ops() */

static inline const struct alloc_ops *runtime_ops(void)
{
    return __atomic_load_n(&hy_ops, __ATOMIC_ACQUIRE);
}

enum hy_state runtime_state(void);
/* From one state to another; false when the state was not `from` (another thread
 * was first): then nothing changed. */
bool runtime_change_state(enum hy_state from, enum hy_state to);
const char *runtime_state_name(enum hy_state s);

void runtime_set_ops(const struct alloc_ops *ops);
/* What the hooks call first: the next allocator. */
extern const struct alloc_ops boot_ops;

/* What is known of the machine once placement has begun. */
struct runtime_machine {
    struct topology topo;
    enum hy_pm_kind backend; /* NODE, FILE or EMULATED once engaged; NONE before */
    uint64_t pm_mask, dram_mask;
    bool pin_dram;                 /* PM nodes have CPUs: DRAM must be asked for as well */
    uint64_t dram_bytes, pm_bytes; /* capacities */
    char why[128];                 /* why passive, or how PM was found */
};
extern struct runtime_machine hy_machine;

#endif
