/* SPDX-License-Identifier: BSD-2-Clause
 * Others move pages as well: Linux' own tiering, numad, a user's migratepages. How much to ask
 * in a pass about where pages really are; pages that go to and fro between two movers rest, each
 * time for longer; and if much of what we move does not stay where it was put, we pause.
 * Pure; the memory is the caller's, and all that is ever kept. */
#ifndef HYBRID_PAGES_RULES_FOREIGN_H
#define HYBRID_PAGES_RULES_FOREIGN_H

#include "base/types.h"

/* Neighbours that rest together, and how many such spots are remembered: where more are fought
 * for than that, the pause is what helps. */
#define FOREIGN_SPOT 16u
#define OTHERS_SPOTS 1024u

struct foreign_spot {
    uint64_t number; /* page number / FOREIGN_SPOT; 0, where no program has pages: none */
    uint32_t seen;   /* the pass in which others moved it last */
    uint32_t until;  /* it rests up to this pass */
    uint8_t strikes; /* how often others undid a move of ours */
    bool ours;       /* we have moved it since */
    bool undone;     /* what others did last has undone a move of ours */
};

struct foreign {
    uint32_t pass;
    unsigned forgiving;     /* passes */
    uint64_t moved, undone; /* pages, of late: in eighths */
    unsigned pause;         /* passes to come */
    unsigned next_pause, calm;
    struct foreign_spot spot[OTHERS_SPOTS];
};

void foreign_init(struct foreign *o);
/* A pass begins. */
void foreign_pass(struct foreign *o);
/* Pages that a child shares are copied when they are written, and the copy lies at home: for
 * a while nobody is blamed for pages that are found there. */
void foreign_forked(struct foreign *o);
/* We have moved pages (numbers: addresses / HY_PAGE). */
void foreign_ours(struct foreign *o, uint64_t first, uint64_t pages);

/* Pages were found on the other tier than believed. `home`: it is the one that they belong to, so
 * that they had left it by a move. Returns how many of them we had moved last. */
uint64_t foreign_found(struct foreign *o, uint64_t first, uint64_t pages, bool home);
/* The next spot from *at on that must not be moved in this pass: its first page, FOREIGN_SPOT of
 * them; false: there are no more. */
bool foreign_resting(const struct foreign *o, unsigned *at, uint64_t *ret_first);
/* At the end of what a pass found: so many passes without moves; 0: none. */
unsigned foreign_pause(struct foreign *o);

/* The most pages asked about in a pass in which many prove to be elsewhere. */
#define OTHERS_MOST 8192u
/* How many pages to ask about in a pass, when one costs `page_ns`; and one in how many of a
 * footprint: a power of two, at most FOREIGN_SPOT. */
uint64_t others_budget(uint64_t interval_ns, unsigned core_permille, uint64_t page_ns);
uint32_t foreign_step(uint64_t pages, uint64_t budget);

#endif
