/* SPDX-License-Identifier: BSD-2-Clause
 * How much DRAM is left free for one who says that it wants it. Pure.
 *
 * What somebody wishes for is not free to others, so one that wishes and takes nothing would keep
 * DRAM from everybody. Whether it takes any can be seen: by what it holds in the registry. So its
 * word counts in full at first; and once DRAM was free for it for PATIENCE_NS, by what it took
 * meanwhile. */
#ifndef HYBRID_PLACE_RULES_PATIENCE_H
#define HYBRID_PLACE_RULES_PATIENCE_H

#include "base/types.h"

/* As long as somebody's silence is taken for life. */
#define PATIENCE_NS 10000000000ull

/* Zero bytes: nobody has looked at it yet. */
struct patience {
    uint64_t most;    /* that it has held */
    uint64_t doubted; /* of what it wants, so much is not believed: UINT64_MAX less what is */
    uint64_t seen_ns;
    uint64_t waited_ns; /* DRAM was free meanwhile */
};

/* One look at it: what it holds, what it says that it wants more, and whether there is DRAM that
 * nobody holds. Of what it wants, so much is kept for it. To want nothing for a while buys no time,
 * nor does giving back and taking again. */
uint64_t patience_keeps(struct patience *p, uint64_t held, uint64_t wants, bool free,
                        uint64_t now_ns);
/* Somebody else has come in its place: what it held tells nothing of this one, but what was doubted
 * is, until it has taken some. */
void patience_another(struct patience *p);

#endif
