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

/* Counts of a page as they are kept: a mean over passes, in WORTH_UNIT-ths of a read that was
 * told of; writes by their price. */
#define WORTH_UNIT   16u
#define WORTH_PASSES 16u /* the mean is over so many at most */

struct worth_rule {
    uint32_t read, write; /* units of one */
    uint32_t passes;      /* that the mean is over, 1 to WORTH_PASSES */
};

/* `pass`: number of passes since counting began, from 1. */
struct worth_rule worth_rule(const struct line_worth *w, uint64_t pass);
/* The mean after one more pass. */
uint16_t worth_mean(const struct worth_rule *r, uint16_t mean, unsigned reads, unsigned writes);
/* Rank of a mean, 0 (never seen) to SCORES - 1: four to each doubling. */
unsigned worth_score(uint16_t mean);
/* The least mean of a rank. */
double worth_least(unsigned score);

/* An exchange: what one told of read is worth in a pass (ns), what an exchange of two pages costs
 * the program, and how many passes it shall pay back in. */
struct worth_exchange {
    double read_ns, cost_ns, passes;
    uint32_t of_passes; /* the means are over so many */
};
/* ret[s]: a page of PM of rank s may take the place of one whose rank is below this; 0: of none. */
void worth_below(const struct worth_exchange *x, uint8_t ret[SCORES]);
/* The least rank of a page of PM that may come to DRAM which nobody uses; SCORES: none. Here
 * `cost_ns` is what one such move costs. */
unsigned worth_fill_from(const struct worth_exchange *x);

#endif
