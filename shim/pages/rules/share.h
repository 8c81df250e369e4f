/* SPDX-License-Identifier: BSD-2-Clause
 * How the share of DRAM that a process may have changes with what others do, and whether that is
 * worth a pass of its own. Pure. */
#ifndef HYBRID_PAGES_RULES_SHARE_H
#define HYBRID_PAGES_RULES_SHARE_H

#include "base/types.h"

/* All zero at first: the first share seen is one that has grown. */
struct share {
    uint64_t bytes; /* the share when free DRAM was last filled, or what it has shrunk to since */
    uint64_t asked; /* of the process, by others, at the last time that counted */
    bool filled;    /* nothing that is free is left to fill */
    uint64_t most;  /* pages of the process in memory, at any time */
};

/* The share is `bytes` now. True: others have left DRAM, by ending or because they were asked, so
 * that filling it begins again. What the process itself frees does not change its share: that goes
 * into its next allocations. */
bool share_grows(struct share *s, uint64_t bytes);
/* So much is asked of a process that has `held` on DRAM. True: clearly more than before. */
bool share_is_asked(struct share *s, uint64_t asked, uint64_t held);
/* So many pages are in memory: how many more than ever. As many may follow by the next look, and
 * DRAM that an exchange makes free would go to them before the page that it is for comes up. */
uint64_t share_growth(struct share *s, uint64_t pages);
/* Of so many exchanges, all or none: more pages must come up than growth can take the place of. */
uint64_t share_swaps(uint64_t swaps, uint64_t growth);
/* Pages that may lie on DRAM where the kernel places what is new: `on` are there, `spare` were free
 * when the pass began, in which so many came `up` and went `down`. Of a program that is `asked` for
 * some none come up: what it vacates is others'. */
uint64_t share_room(uint64_t on, uint64_t spare, uint64_t up, uint64_t down, uint64_t asked);

#define SPARE_PASSES 16u

/* Zeros at first. */
struct spare {
    uint64_t free[SPARE_PASSES], held[SPARE_PASSES]; /* at the ends of the last passes */
    unsigned at;
    uint64_t given; /* moved away for others, who asked, and not back yet */
    bool asked;     /* at the last pass */
};

/* At the end of a pass `free` bytes of DRAM are free; `held` has become less by what others have
 * given up for good: CPU-bound ones, or such as have ended. NULL: this one may not ask. */
void spare_note(struct spare *s, uint64_t free, const uint64_t *held);
/* So much of that may pages come to: what was free at the ends of all these passes, since what is
 * free for a moment goes into the next allocations; what others have given up meanwhile, who do not
 * take it back; and what this one gave up for others, who have left it. */
uint64_t spare_bytes(const struct spare *s);
/* Since the last call so many bytes have come `up`, on balance; `asked`: others ask this one for
 * DRAM now. */
void spare_moved(struct spare *s, int64_t up, bool asked);

#endif
