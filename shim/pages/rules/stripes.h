/* SPDX-License-Identifier: BSD-2-Clause
 * A large block of which a part lies on PM. Its end is what first touch would send there. Where a
 * plan has chosen how much of it gets DRAM, no page of it is better than another, and it is
 * striped: threads that each work on a part of it then all find the same share on PM, none waits
 * for the one that has the end, and both memories are busy at a time. Where some of its parts are
 * used more, these lie on DRAM as a whole before any of the next level does, and the last level
 * that has some is striped. Pure. */
#ifndef HYBRID_PAGES_RULES_STRIPES_H
#define HYBRID_PAGES_RULES_STRIPES_H

#include "base/types.h"

/* At most: each costs the process two mappings. And no smaller ones. */
#define STRIPES_MOST  32u
#define STRIPES_LEAST ((size_t)128 * HY_KIB)
/* But where parts differ, which are so many for each block. */
#define STRIPES_LEVELS 32u
#define STRIPES_LEVEL  ((size_t)16 * HY_KIB)

struct stripes {
    uintptr_t base;       /* all in multiples of a page */
    size_t size, away;    /* bytes; of them on PM, less than size */
    unsigned n;           /* 1: only the end */
    const uint8_t *level; /* of each part; NULL: alike */
};

/* Into how many stripes such a block is cut, if that may cost so many. */
unsigned stripes_count(const struct stripes *s, unsigned most);
/* The part of stripe `k` that lies on PM, its last pages (of two parts in one, mixed); false: none
 * of it. */
bool stripe_away(const struct stripes *s, unsigned k, uintptr_t *ret_base, size_t *ret_bytes);
/* The first range on PM from stripe *k on, which becomes the one behind it; false: there is none.
 */
bool stripes_next(const struct stripes *s, unsigned *k, uintptr_t *ret_base, size_t *ret_bytes);

#endif
