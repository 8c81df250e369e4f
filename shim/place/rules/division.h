/* SPDX-License-Identifier: BSD-2-Clause
 * How the DRAM that all share is divided by what each gains from it, over one snapshot of the
 * registry. Pure: every participant finds the same from the same snapshot, whatever the order of
 * the slots, so that nobody has to command.
 *
 * Each tells a curve: its predicted time with no, one, ... seven eighths of its data on DRAM, the
 * hottest first, over that with all of it there. The classes come first, as in Algorithm 1
 * (papers/004, section III-B): who is CPU-bound gives way. Among the others DRAM goes where a byte
 * saves most time (water-filling over the curves' convex hulls), times the weight of each, less
 * what moving it there costs.
 *
 * Nothing is taken from anybody but for counted evidence: who tells no curve keeps what it holds.
 * What is held counts for more than what is not, so that nothing swings; and everybody keeps a
 * floor.
 *
 * A curve is its teller's word, and others cannot check it. So whatever the others tell, nobody
 * gives up more than what it holds beyond an equal part of the budget (parts.h), and below that
 * what costs it 1 % of its time by its own curve. Weights decide about the rest; only its own,
 * below 1, makes a program's equal part smaller, as with nice(1). */
#ifndef HYBRID_PLACE_RULES_DIVISION_H
#define HYBRID_PLACE_RULES_DIVISION_H

#include "base/types.h"

#define DIVISION_MAX    256u
#define DIVISION_POINTS 8u

struct division_party {
    uint32_t id; /* decides between equals: the lower one first */
    enum hy_class cls;
    uint64_t held;  /* bytes on DRAM */
    uint64_t bytes; /* of all its data */
    uint64_t takes; /* of what is not on DRAM: it would bring so much there at once */
    /* time[k]: with k eighths of `bytes` on DRAM, in thousandths of the time with all; time[0] of
     * 0: nothing was counted. */
    uint32_t time[DIVISION_POINTS];
    uint32_t now;     /* its time as the data lie now, in the same unit; 0: not known */
    uint32_t weight;  /* hundredths; 0: 100 */
    uint64_t run_ns;  /* since it began */
    uint32_t move_ns; /* what it costs that a page comes and another makes place for it */
    int32_t group;    /* processes that share a part (parts.h); 0: it has one for itself */
};

struct division {
    uint64_t share[DIVISION_MAX]; /* what each should hold; their sum is the budget at most */
    uint64_t ask[DIVISION_MAX];   /* of it, to be given up now: others gain more by it */
    uint64_t lack[DIVISION_MAX];  /* what is still to come to it */
    uint64_t right[DIVISION_MAX]; /* so much is kept from it for nobody, if it is free */
    uint64_t lacking;             /* sum of lack[]; 0: there is nothing to change */
};

/* `n`: at most DIVISION_MAX. One that is alone has the budget for itself. */
void division_make(uint64_t budget, const struct division_party *p, unsigned n,
                   struct division *ret);
/* The most that party `i` should hold, as things are. UINT64_MAX: nobody else waits for any. */
uint64_t division_most(const struct division *d, const struct division_party *p, unsigned i);
/* The curve of a program that all on PM makes `slowdown` (thousandths) times slower; cold[k]: share
 * of its accesses that does not go to the hottest k eighths of its data, in thousandths. */
void division_curve(uint32_t slowdown, const uint32_t cold[DIVISION_POINTS],
                    uint32_t ret_time[DIVISION_POINTS]);
/* A curve that one may fill by: no more than `most`, never rising, convex, 1000 at its end. */
void division_hull(const uint32_t time[DIVISION_POINTS], uint32_t most,
                   double ret[DIVISION_POINTS + 1]);

#endif
