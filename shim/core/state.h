/* SPDX-License-Identifier: BSD-2-Clause
 * The states of the library, and the table of allocation functions that the hooks call. */
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

/* The table itself, not a pointer to one: the hooks end in one jump. No entry is ever NULL. */
extern HY_HIDDEN struct alloc_ops hy_ops;

/* One of its functions. On x86-64 every load acquires, and a plain one is part of the jump. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define RUNTIME_OP(name) (hy_ops.name)
#else
#define RUNTIME_OP(name) __atomic_load_n(&hy_ops.name, __ATOMIC_ACQUIRE)
#endif

enum hy_state runtime_state(void);

/* Have malloc, calloc, realloc and free the same owner, us or somebody else? A program that defines
 * some of them lives as long as no library uses the others (malloc_hook.c). */
bool malloc_is_one_family(void);
/* May code that allocates, as the loader's does, run in threads of ours and before main? Not where
 * the executable has a malloc of its own and has made no thread: its malloc need know of neither.
 */
bool malloc_is_for_threads(void);
/* From one state to another; false when the state was not `from` (another thread
 * was first): then nothing changed. */
bool runtime_change_state(enum hy_state from, enum hy_state to);
const char *runtime_state_name(enum hy_state s);

/* Function by function: those that take blocks before those that make them, as a thread may see the
 * old and the new ones mixed. So the new ones must know the blocks of the old. */
void runtime_set_ops(const struct alloc_ops *ops);
/* The next allocator still serves, as nothing else was set. */
bool runtime_ops_are_first(void);

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
