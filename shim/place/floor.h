/* SPDX-License-Identifier: BSD-2-Clause
 * The floor: nothing that is placed without knowing better lies worse than first touch would put
 * it. Where this process may have all the DRAM there is, the DRAM heap has no memory policy of its
 * own: the kernel gives each page DRAM when it is first touched, and PM where none is left. Blocks
 * are split page by page so, in the order in which they are used, and what is not touched takes
 * nothing from anybody. Only evidence (migrator.h) moves a page away from there.
 *
 * A smaller limit (HYBRID_DRAM, HYBRID_DRAM_SHARED) is kept by charging before use (policy.c),
 * since the kernel does not know of it. */
#include "core/state.h"
#include "settings/rules/options.h"
#ifndef HYBRID_PLACE_FLOOR_H
#define HYBRID_PLACE_FLOOR_H

/* Once, when the machine is known. `limit` and `shared`: DRAM for this process, and for all. */
void floor_init(const struct hy_settings *s, const struct runtime_machine *m, uint64_t limit,
                uint64_t shared);
/* Does the kernel place what is new? */
bool floor_on(void);
/* DRAM that no process uses and the kernel would still give, in bytes; UINT64_MAX: there is no end
 * to it. By threads of ours only: it reads files. */
uint64_t floor_dram_free(void);
/* The same by the last look and what was charged since: for malloc, whose threads read no files.
 * 0 before the first. */
uint64_t floor_dram_left(void);
/* A look at it, by the control thread: it tells the heaps how short DRAM is. */
void floor_tick(void);

#endif
