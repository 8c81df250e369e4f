/* SPDX-License-Identifier: BSD-2-Clause
 * Pages of blocks in use that the program has protected, unmapped, locked, kept from its children,
 * or mapped something else into. Such a page is noted, and mapped afresh when its block is freed:
 * what comes next in its place is ordinary memory. Nothing of this costs a malloc or a free until
 * a program does it once. */
#ifndef HYBRID_HEAP_ALTERED_H
#define HYBRID_HEAP_ALTERED_H

#include "heap/internal.h"

/* Beside the way to the head of a span, in from_head. */
#define ALTERED 0x80u

extern HY_HIDDEN bool hy_altered; /* any page, ever */

/* Any page of the run. */
HY_COLD bool altered_run(uint32_t i);
/* The run is free: it is mapped afresh, without memory. false: it cannot be, and is not used any
 * more. Under the tier's pages lock. */
bool altered_renew(enum hy_tier t, uint32_t i, uint32_t len);
/* A block of a span one of whose pages was altered (HEAP_ALTERED): its bin; and it is freed. No
 * lock is held. */
HY_COLD unsigned altered_bin(uint32_t i);
HY_COLD void altered_free(uint32_t i, void *block);

/* Of a run that was freed: is it to be mapped afresh? */
static inline bool run_is_altered(uint32_t i)
{
    return HY_UNLIKELY(__atomic_load_n(&hy_altered, __ATOMIC_RELAXED)) && altered_run(i);
}

#endif
