/* SPDX-License-Identifier: BSD-2-Clause
 * From samples of accesses to lines: what each sampled line of a recording stands for. Pure. */
#ifndef HYBRID_RECORD_RULES_ACCESS_SCALE_H
#define HYBRID_RECORD_RULES_ACCESS_SCALE_H

#include "base/types.h"

enum access_kind { ACCESS_READ, ACCESS_WRITTEN, ACCESS_KINDS };

struct access_sums {
    double lines[ACCESS_KINDS]; /* samples times their period, of the whole program */
    double seen[ACCESS_KINDS];  /* part of the time in which such were sampled; 0: never */
    double lost;                /* samples that did not fit, for each one that came */
    /* Of loads and stores, as processors tell them: a line that a store changes is read before,
     * and shows in no load. Else lines read have come in as such. */
    bool instructions;
    double counted[ACCESS_KINDS]; /* by the counters, where `instructions`; 0: not known */
};

struct access_scale {
    double read;    /* lines read for each line of samples of loads, */
    double fetched; /* and for each of stores; */
    double written; /* lines written for each of stores */
    bool counted;   /* sums are the counters' */
};

/* Samples tell the shares of sites, and where there are counters, these tell the sum: of a line
 * that a prefetcher has fetched in time no load tells, a store that missed L1 may have found its
 * line in L3, and the period of some events is not that of misses. */
void access_scale_make(const struct access_sums *s, struct access_scale *ret);

#endif
