/* SPDX-License-Identifier: BSD-2-Clause
 * The only mover of pages. One thread at a time. It moves what it is told, says of every page
 * where it is now, and gives up on pages that do not want to. */
#ifndef HYBRID_PAGES_MOVER_H
#define HYBRID_PAGES_MOVER_H

#include "base/types.h"

enum migrate_way {
    MIGRATE_NONE,
    MIGRATE_NUMA,     /* the kernel's move_pages */
    MIGRATE_EMULATED, /* the emulated machine's; without one, in the books only */
    MIGRATE_FILE      /* pages in use stay where they are (docs/pages.md says why) */
};

struct migrator {
    enum migrate_way way;
    uint64_t nodes[HY_TIERS]; /* NUMA: bit i = node i */
};

enum migrate_outcome {
    MIGRATE_MOVED,
    MIGRATE_THERE,  /* it was there already */
    MIGRATE_ABSENT, /* not in memory: there is nothing to move */
    MIGRATE_FULL,   /* no room on that tier */
    MIGRATE_REFUSED /* shared with another process, pinned, or busy all the time */
};

#define MIGRATE_PAGES 512u /* at most, in one call */

struct migrate_result {
    uint8_t page[MIGRATE_PAGES]; /* enum migrate_outcome */
    uint32_t count[MIGRATE_REFUSED + 1];
    uint64_t ns;
};

/* Move the pages of a range (whole pages, at most MIGRATE_PAGES). 0, or -errno when nothing
 * could be tried: -ENODEV no way or no node of that tier, -EOPNOTSUPP pages of files, -EPERM
 * and -ENOSYS what the kernel (or a filter of system calls) says. */
int migrate(const struct migrator *m, void *base, size_t bytes, enum hy_tier to,
            struct migrate_result *ret);

/* On which tier each of these pages is, at most MIGRATE_PAGES; -1: not in memory, or on neither.
 * `how`: a struct migrator. 0 or -errno: -EOPNOTSUPP where nobody but us moves pages. */
int migrator_where(void *how, void *const *page, unsigned n, int8_t *ret);

#endif
