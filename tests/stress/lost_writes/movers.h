/* SPDX-License-Identifier: BSD-2-Clause
 * Who moves the pages under the writers. Two are known to lose writes: they show that the
 * checker sees it, and why the file backend has no mover (docs/pages.md). */
#ifndef LOST_WRITES_MOVERS_H
#define LOST_WRITES_MOVERS_H

#include <stddef.h>
#include <stdint.h>

#include "pages/mover.h"

struct mover {
    const char *name;
    bool hot_quarter; /* writes go to a part of the pages, which changes: else nobody moves them */
    /* All writes stop during this round. */
    bool (*needs_peace)(enum hy_tier to);
    /* Memory of PAGES pages; NULL with errno. */
    char *(*map)(void);
    /* All pages, or as many as will, to a tier; adds up the outcomes. 0 or -errno. */
    int (*round)(char *memory, enum hy_tier to, uint64_t count[MIGRATE_REFUSED + 1]);
};
/* NULL: no such one. `numa`, `emulated`, `machine`, `preload`, `preload-blind`, `file-up`,
 * `file-down`. */
const struct mover *mover_named(const char *name);

#endif
