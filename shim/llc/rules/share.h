/* SPDX-License-Identifier: BSD-2-Clause
 * Which share of the last-level cache a program shall fill: all of it, or a few ways. Pure.
 *
 * What streams through a cache uses hardly a line again, and pushes out those that other programs
 * do use; so it gets a small slab of it (002, sections 3.2 and 7.2: thrashing pages, a sixteenth).
 * Whether it really does without the rest is tried, by turns and paid from the purse of regret, as
 * thread counts are (threads/rules/pacing_search.h): it must get as many instructions done, for the
 * number of misses is what is being changed. Nobody is tried without a neighbour. */
#ifndef HYBRID_LLC_RULES_SHARE_H
#define HYBRID_LLC_RULES_SHARE_H

#include "classify/rules/classes.h"
#include "place/rules/pacing.h"
#include "threads/rules/pacing_search.h"

/* A program may lose so much of its speed by it: as much as all that is tried may cost. */
#define LLC_GIVES REGRET_SHARE

/* Does the program stream? It waits for memory, and at least half of the lines that it misses come
 * in an order that can be foreseen. Where nobody counts that, its pages tell: at least half of
 * those that were touched are thrashing ones (pages/rules/predictor.h). */
bool llc_streams(const struct classification *c, const struct window *w, uint64_t thrashing,
                 uint64_t touched);

/* Zero bytes: all ways, nothing tried. */
struct llc_share {
    struct pacing_turn turn; /* it shall have few */
    struct pacing_search search;
    unsigned given_back; /* it was slower by its small share, and got the other back at once */
};

/* A window, `wanted`: it streams, and there is somebody else. In it so many instructions were done,
 * 0: not known. */
void llc_share_window(struct llc_share *s, bool wanted, struct regret *purse, double run_ns,
                      double instructions, double elapsed_ns);
/* From now on: few ways? */
bool llc_share_few(const struct llc_share *s);
/* Not only for a moment: it was tried, and costs it nothing. */
bool llc_share_kept(const struct llc_share *s);

#endif
