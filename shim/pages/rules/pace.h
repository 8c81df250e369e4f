/* SPDX-License-Identifier: BSD-2-Clause
 * How often to look and how much to move: an interval that grows while nothing changes, a
 * rate limit in bytes/s and in the share of one core, and a back-off when moves do not pay or
 * are undone. What they cost and bring is measured by the caller. Pure; times in ns. */
#ifndef HYBRID_PAGES_RULES_PACE_H
#define HYBRID_PAGES_RULES_PACE_H

#include "base/types.h"

struct pace_limits {
    uint64_t interval_min, interval_max;
    uint64_t bytes_per_s;
    unsigned core_permille; /* of one core, for looking and moving together */
};

struct pace {
    struct pace_limits limits;
    uint64_t interval;  /* until the next pass */
    unsigned hurry;     /* passes for which it does not grow */
    uint64_t move_ns;   /* a page, as measured */
    int64_t byte_room;  /* tokens; below 0: owed */
    int64_t time_room;  /* the same, of core time */
    unsigned worthless; /* passes in a row whose moves did not pay */
    unsigned pause;     /* passes without moves still to come */
    unsigned next_pause;
    unsigned truce;   /* passes without moves still to come, as others undo them (others.h) */
    unsigned caution; /* doubtful exchanges: 1/2^caution of what is right once they have paid */
};

/* 3 us a page until measured (paper 002, section 7.4). */
#define PACE_MOVE_NS 3000u

void pace_init(struct pace *p, const struct pace_limits *l);
/* Time goes by: `elapsed` since the last call, `spent` of it by us on looking at pages. */
void pace_elapsed(struct pace *p, uint64_t elapsed, uint64_t spent);
/* A pass: pages whose prediction it gave and how many changed. Sets `interval`. */
void pace_pass(struct pace *p, uint64_t pages, uint64_t changed);
/* Others undo what we move: so many passes without moves, whatever the program does. */
void pace_truce(struct pace *p, unsigned passes);
static inline bool pace_paused(const struct pace *p)
{
    return p->pause > 0 || p->truce > 0;
}
/* Pages that may be moved now; 0 in a pause. */
uint64_t pace_moves(const struct pace *p);
/* The same of free DRAM that is filled before anything is known: by the rate alone. */
uint64_t pace_fill(const struct pace *p);
/* And of what others ask for: no pause, and no quarrel, keeps it from them. */
uint64_t pace_owed(const struct pace *p);
void pace_filled(struct pace *p, uint64_t pages);
/* Of these, in exchange for others that may be as good; of so many pages on DRAM. */
uint64_t pace_swaps(const struct pace *p, uint64_t dram_pages);
/* The same where one is clearly better: any, once exchanges have paid. */
uint64_t pace_clear(const struct pace *p, uint64_t dram_pages);
/* The program does something else than when the pause began. */
void pace_wake(struct pace *p);
/* What the next looks show is wanted soon: the shortest interval, from which it grows again. */
void pace_hurry(struct pace *p);
/* Pages were moved (or tried), in so much time of ours. */
void pace_moved(struct pace *p, uint64_t pages, uint64_t spent);
/* What the moves of the last pass brought in this one, in time of the program's threads (the
 * caller's estimate; may be negative), what they cost, and how many of `moved` pages
 * would have to go back. Call once a pass after which something was moved. */
void pace_result(struct pace *p, int64_t gained, uint64_t cost, uint64_t moved, uint64_t regretted);

#endif
