/* SPDX-License-Identifier: BSD-2-Clause
 * How much free memory is kept instead of given back: a base, a part of what is live, and what
 * proved to be given back too early. All in pages. */
#ifndef HYBRID_HEAP_RULES_KEEP_H
#define HYBRID_HEAP_RULES_KEEP_H

#include "base/types.h"

struct keep {
    uint64_t early;  /* given back for the bound since the last tick */
    uint64_t regret; /* the bound is raised by */
};

enum keep_mood {
    KEEP_USUAL,
    KEEP_TIGHT,  /* addresses are short */
    KEEP_LITTLE, /* others have a use for it: only what proved to be given back too early */
    KEEP_FAR     /* the same of what costs them little: it lies on PM, or PM is hardly slower */
};

/* Free pages that may be kept beside `live` ones. */
uint64_t keep_limit(const struct keep *k, uint64_t live, enum keep_mood mood);
/* Of them so many may wait for requests of their very length, where others cannot use them. */
uint64_t keep_parked_limit(uint64_t live);
/* As much was given back for the bound. */
void keep_note_back(struct keep *k, uint64_t pages);
/* Fresh memory is taken; although as much was given back a moment ago: more is kept. */
void keep_note_fresh(struct keep *k, uint64_t pages, uint64_t live);
/* Time passes, and what was learnt is forgotten. */
void keep_tick(struct keep *k);

#endif
