/* SPDX-License-Identifier: BSD-2-Clause
 * What a page is worth on DRAM where accesses are counted page by page: the program's time that
 * it would save there, by the model's price of a line read and written. From it the rank of a
 * page, and which of two pages may change places: those whose difference is no luck of counting
 * and pays back what the exchange costs in a part of the time that the program has run. Pure. */
#ifndef HYBRID_PAGES_RULES_WORTH_H
#define HYBRID_PAGES_RULES_WORTH_H

#include "base/types.h"
#include "classify/rules/slowdown.h"
#include "pages/rules/predictor.h"

/* What a page is worth as it is kept: a mean over passes, in units of 1/WORTH_UNITS ns for each
 * line that was told of. Each access is taken at the price of its pass: prices change with what the
 * program waits for at the moment. */
#define WORTH_UNITS  4u
#define WORTH_PASSES 64u /* the mean is over so many at most */

struct worth_rule {
    uint32_t read, write; /* units of one line */
    uint32_t passes;      /* that the mean is over, 1 to WORTH_PASSES */
};

/* `pass`: number of passes since counting began, from 1. */
struct worth_rule worth_rule(const struct line_worth *w, uint64_t pass);
/* The mean after one more pass. */
uint16_t worth_mean(const struct worth_rule *r, uint16_t mean, unsigned reads, unsigned writes);
/* Neighbours are parts of one array as a rule, so what is told of WORTH_POOL of them (aligned)
 * tells of each, but for one that differs from them by more than luck. `sum`: of all their means.
 * What the page's rank is made of. */
#define WORTH_POOL 8u
uint16_t worth_pooled(const struct worth_rule *r, uint16_t mean, uint32_t sum, unsigned pages);
/* Rank of a mean, 0 (never seen) to SCORES - 1: four to each doubling. */
unsigned worth_score(uint16_t mean);
/* The least mean of a rank. */
double worth_least(unsigned score);

/* How far the means of all passes foretell what comes. Of one pass, over all pages: the squares of
 * their means, and the means times what the pages were worth in it. A mean that is all luck, or of
 * what a program no longer does, foretells nothing; pages that are used in turns even out. */
struct worth_foretold {
    double told, came;
};
static inline void worth_foretold_add(struct worth_foretold *f, uint16_t mean, int64_t units)
{
    f->told += (double)mean * mean;
    f->came += (double)mean * (double)units;
}
/* After one more pass: the part of what is foretold that comes, of late; 0 to 1. */
double worth_foretells(struct worth_foretold *late, const struct worth_foretold *pass);

/* What it costs the program that a page moves to `to`: the whole program waits for its transfer, if
 * PM is what it waits for, and one of its threads for the lines, which have left the caches. */
double worth_move_ns(const struct machine_figures *f, enum hy_tier to, double threads);

/* An exchange: what a unit of a mean is worth in a pass (ns), what an exchange of two pages costs
 * the program, and how many passes it shall pay back in. */
struct worth_exchange {
    double unit_ns, cost_ns, passes;
    double most_units;  /* of one access, in those passes */
    uint32_t of_passes; /* the means are over so many, */
    uint32_t of_pages;  /* of so many pages */
};
/* ret[s]: a page of PM of rank s may take the place of one whose rank is below this; 0: of none. */
void worth_below(const struct worth_exchange *x, uint8_t ret[SCORES]);
/* The least rank of a page of PM that may come to DRAM which nobody uses; SCORES: none. Here
 * `cost_ns` is what one such move costs. */
unsigned worth_fill_from(const struct worth_exchange *x);

#endif
