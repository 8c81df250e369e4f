/* SPDX-License-Identifier: BSD-2-Clause
 * A large block of which a part lies on PM. Its end is what first touch would send there. Where a
 * plan has chosen how much of it gets DRAM, no page of it is better than another, and it is
 * striped: threads that each work on a part of it then all find the same share on PM, none waits
 * for the one that has the end, and both memories are busy at a time. Pure. */
#ifndef HYBRID_PAGES_RULES_STRIPES_H
#define HYBRID_PAGES_RULES_STRIPES_H

#include "base/types.h"

/* At most: each costs the process two mappings. And no smaller ones. */
#define STRIPES_MOST  32u
#define STRIPES_LEAST ((size_t)128 * HY_KIB)

struct stripes {
    uintptr_t base;    /* all in multiples of a page */
    size_t size, away; /* bytes; of them on PM, less than size */
    unsigned n;        /* 1: only the end */
};

/* Into how many stripes such a block is cut, if that may cost so many. */
unsigned stripes_count(size_t size, unsigned most);
/* The part of stripe `k` that lies on PM, its last pages; false: none of it. */
bool stripe_away(const struct stripes *s, unsigned k, uintptr_t *ret_base, size_t *ret_bytes);

#endif
