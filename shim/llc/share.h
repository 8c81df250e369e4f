/* SPDX-License-Identifier: BSD-2-Clause
 * A program that streams through the last-level cache is kept to few ways of it while others run
 * beside it, if that costs it nothing (llc/rules/share.h): by a group of resctrl (llc/group.h), or
 * on the emulated machine by that. By the control thread, but for what says otherwise. */
#ifndef HYBRID_LLC_SHARE_H
#define HYBRID_LLC_SHARE_H

#include "classify/rules/classes.h"
#include "place/registry.h"

struct llc_view {
    bool possible;
    char where[160];  /* the group, "the emulated machine"; where it is not possible: why */
    unsigned few, of; /* ways; 0: not known */
    unsigned in_force;
    bool now;                  /* it has few */
    enum registry_reuse reuse; /* as the last window judged it */
    bool streams;              /* the same, for the report */
    unsigned times, given_back;
    uint32_t speed_milli; /* as the trials found it: with few, over that with all; 0: none yet */
    uint64_t few_ns;      /* so long it had few */
};

/* Could it ever be? Then windows are wanted. */
bool llc_possible(void);
/* `thrashing` of `touched` pages: what the last look at the pages said. */
void llc_window(const struct window *w, const struct classification *c, uint64_t thrashing,
                uint64_t touched);
/* Threads made meanwhile are in the group that their maker was in. */
void llc_tick(void);
/* Back to all ways; with the next window it goes on. Before threads of ours end. */
void llc_pause(void);
/* Any thread, not from malloc. */
void llc_get(struct llc_view *ret);
/* Around starting another program, by the calling thread: it shall have all ways. */
bool llc_open(void);
void llc_close(bool opened);
/* In a forked child, which begins with all. */
void llc_child(void);

#endif
