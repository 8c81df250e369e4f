/* SPDX-License-Identifier: BSD-2-Clause
 * Files that are PM: those below one directory (HYBRID_EMU_PM_DIR). So the heap of any
 * allocator that maps files, a peer's too, is seen as PM. */
#ifndef EMU_PMDIR_H
#define EMU_PMDIR_H

#include <stdbool.h>

/* Also marks what preloaded libraries have mapped already. -errno of realpath. */
int emu_pmdir_set(const char *dir);
/* Is this open file below the directory? Keeps errno. */
bool emu_pmdir_has(int fd);

#endif
