/* SPDX-License-Identifier: BSD-2-Clause
 * Beside other movers of pages (Linux' own tiering, numad, migratepages): what they did is found
 * out, the histories and the account of DRAM follow, and moves that are undone are not made again
 * and again. On `numa` only; elsewhere nobody else can move a page. All by the pages' thread. */
#ifndef HYBRID_PAGES_MIGRATE_BESIDE_H
#define HYBRID_PAGES_MIGRATE_BESIDE_H

#include "pages/mover.h"
#include "pages/rules/foreign.h"
#include "pages/rules/pace.h"

#define BESIDE_FOUND 1024u /* runs of pages in a pass; what is more waits for the next one */

struct beside_view {
    uint64_t asked_pages;  /* where they are, */
    uint64_t found_pages;  /* of them on the other tier than believed; */
    uint64_t undone_pages; /* of these we had moved */
    uint64_t truces;       /* how often moves stopped for that */
};

struct beside {
    bool on, opened;
    bool forked; /* told by the program's threads */
    uint64_t page_ns, due_ns;
    struct beside_view view;
    struct foreign foreign; /* large: last, as the others are written at each fork */
};

void beside_begin(struct beside *b, const struct migrator *how);
/* Any thread: the process has forked, or is the child. */
void beside_forked(struct beside *b);
/* Ask about a part of the pages. */
void beside_look(struct beside *b, const struct migrator *how, struct pace *pace);
/* Nothing else is looked at: is it time to ask all the same? */
bool beside_due(const struct beside *b);
/* What became of pages that we wanted to move. */
void beside_moved(struct beside *b, const void *base, size_t pages, enum migrate_outcome o);

#endif
