/* SPDX-License-Identifier: BSD-2-Clause
 * Call sites that hold memory by turns: what a step of a program allocates and frees again. Two
 * sites whose turns do not meet can have the same DRAM, which a plan (site_plan.h), that adds up
 * the most of each, gives to one of them only. Time is the volume that the program has allocated,
 * so it stands while nothing is asked for. Any thread may call, without a lock:
 * turns that two threads tell of at once are a wrong guess, no more. Pure. */
#ifndef HYBRID_PLACE_RULES_SITE_TURNS_H
#define HYBRID_PLACE_RULES_SITE_TURNS_H

#include "base/types.h"

/* Zero bytes: nothing has come yet. */
struct site_turn {
    uint64_t since;  /* the last one's begin */
    uint64_t period; /* from the begin before to that one; 0: not known */
    uint64_t length; /* of the last one that has ended; 0: none has */
};

/* A site that held nothing holds something; one that held something holds nothing. */
void site_turn_begin(struct site_turn *t, uint64_t now);
void site_turn_end(struct site_turn *t, uint64_t now);
/* Will a site that holds nothing now come before a block is freed that `other` gets now? As far as
 * is known: what has not come twice can come at any time, what has not ended once has no end. */
bool site_turns_meet(const struct site_turn *t, const struct site_turn *other, uint64_t now);
/* Is a block of `n` bytes better begun on DRAM, of which `left` is free and `kept` of that wanted
 * before the block is gone? `saves`, `kept_saves`: what a byte of either saves there. What it does
 * not find there lies on PM. */
bool site_turn_pays(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves);
/* The part of it that gets DRAM: all of it if that pays, else what is left beside what is kept. */
uint64_t site_turn_part(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves);
/* Has it begun twice? What has not takes DRAM for good. */
bool site_turn_comes_again(const struct site_turn *t);
/* The same of what does not, beyond a part that the plan has for it: a byte more takes another's
 * only if it saves more than that one. */
uint64_t site_turn_split(uint64_t n, uint64_t left, uint64_t kept, double saves, double kept_saves);

#endif
