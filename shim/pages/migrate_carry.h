/* SPDX-License-Identifier: BSD-2-Clause
 * Moves are made, charged, and noted in the histories; those of a trial are remembered until their
 * verdict, and taken back if they did not pay. All by the pages' thread. */
#ifndef HYBRID_PAGES_MIGRATE_CARRY_H
#define HYBRID_PAGES_MIGRATE_CARRY_H

#include "migrator.h"
#include "pages/migrate_beside.h"
#include "pages/migrate_judge.h"
#include "pages/mover.h"

#define CARRY_KEPT 1024u /* of more moves nothing is remembered */

struct carrier {
    struct migrator how;
    struct pace *pace;
    struct migrate_judge *judge;
    struct beside *beside;
    struct page_move kept[CARRY_KEPT];
    unsigned moves; /* since the last verdict; CARRY_KEPT: there may have been more */
    bool whole;     /* they can be taken back */
};

/* `fills`: free DRAM, which is no question of whether it pays. false: no room on that tier, or it
 * cannot be done: no more of these now. */
bool carry_out(struct carrier *c, const struct page_move *move, struct migrate_pass *pass,
               bool fills);
/* The same for who judges by itself what a move brings (tasks): no trial, no verdict here. */
bool carry_now(struct carrier *c, const struct page_move *move, struct migrate_pass *pass);
/* Nothing waits for a verdict any more; moves that come do. */
void carry_begin(struct carrier *c);
/* After the moves of a pass: `whole`: these can be taken back. */
void carry_end(struct carrier *c, bool whole);
/* After a look: what it was told of the trial's pages goes to the judge. */
void carry_count(struct carrier *c, uint64_t look_ns);
/* The verdict was bad: pages that are still where the trial has put them change places again. */
void carry_back(struct carrier *c, struct migrate_pass *pass);

#endif
