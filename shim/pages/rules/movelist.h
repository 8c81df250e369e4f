/* SPDX-License-Identifier: BSD-2-Clause
 * Which pages to move in one pass (paper 002, section 5.2). The heat map says how many of
 * each score there are on each tier; that settles how many are worth it within the DRAM
 * budget and the rate, in time that does not depend on the footprint. A bounded sweep
 * over the histories then finds them; it goes on where the last one ended. Pure. */
#ifndef HYBRID_PAGES_RULES_MOVELIST_H
#define HYBRID_PAGES_RULES_MOVELIST_H

#include "pages/rules/history.h"

/* More than a band: else pages at the edge of one would change places for ever. */
#define MOVE_MARGIN (SCORE_BAND + 8)
/* From here on it is clear which of two pages is better; below, moves first show that they pay. */
#define MOVE_CLEAR (2 * SCORE_BAND + 8)

struct move_limits {
    uint64_t dram_pages;  /* the most tracked pages on DRAM */
    uint64_t moves;       /* the most pages to move, both ways together */
    uint64_t swaps;       /* of them to PM in an exchange that is not clear, or eagerly */
    uint64_t clear;       /* the same, where it is clear */
    uint8_t margin;       /* two pages change places if their scores differ by so much */
    const uint8_t *below; /* not NULL: by worth (worth.h), in place of the margins */
    uint8_t fill_from;    /* with it: the least rank that may come to free DRAM */
    bool eager;           /* cold pages go to PM at once, not when their place is needed */
    bool no_reads_up;     /* no read-domain pages to DRAM: its bandwidth is used up */
    bool fill_cold;       /* free DRAM for pages of any score: nothing is known of them yet */
    uint64_t shed;        /* so many hot pages to PM for the same reason, read domain first */
};

/* Pages to take, by tier that they are on and score. */
struct move_plan {
    uint64_t take[HY_TIERS][SCORES];
    uint64_t up, down; /* sums: to DRAM, to PM */
    uint64_t room;     /* free DRAM, before any move */
};

void move_plan(const struct heat_map *m, const struct move_limits *l, struct move_plan *ret);

struct move {
    uint16_t range; /* index of the history */
    uint32_t first, pages;
    enum hy_tier to;
};

/* Where a sweep goes on. All zero at first. */
struct move_hand {
    uint32_t range, page;
};

/* The moves of a plan that a visit to at most `visits` groups finds, those to PM first, so that
 * in order they never need more DRAM than there is; neighbours are joined up to
 * MOVE_PAGES. `plan` is used up. Groups are cut where a plan takes a part of them.
 * Returns how many moves, at most `cap`; *ret_regret, if not NULL: pages among
 * those visited that would have to go back to where they were taken from not long ago. */
#define MOVE_PAGES 512u
unsigned move_list(struct history *h, unsigned ranges, struct move_plan *plan,
                   struct move_hand *hand, uint64_t visits, struct move *list, unsigned cap,
                   uint64_t *ret_regret);

#endif
