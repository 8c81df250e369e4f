/* SPDX-License-Identifier: BSD-2-Clause
 * Who begins now, and who waits: the two methods against interference of papers/004 (DIGEST 004,
 * section V.B) over a snapshot of all participants. Pure.
 *
 * Writing much to PM takes up to 97 % of DRAM's bandwidth. So beside a write-intensive program on
 * PM one begins that suffers little (method 1), and beside a bandwidth-sensitive one on DRAM one
 * that writes little to PM (method 2): the others wait. */
#ifndef HYBRID_PLACE_RULES_ADMISSION_H
#define HYBRID_PLACE_RULES_ADMISSION_H

#include "base/types.h"

/* Who waits looks this often, */
#define ADMISSION_LOOK_NS 100000000ull
/* and who has told nothing for so long is stopped: nobody stands in line behind him. */
#define ADMISSION_SILENT_NS 2000000000ull

struct admission_party {
    int32_t pid;
    enum hy_class cls;
    bool writes;         /* write-intensive */
    bool on_pm;          /* most of its data are there, or will be */
    uint64_t arrived_ns; /* waits since then; 0: it runs */
    uint64_t age_ns;     /* of what it told last */
};

/* Does one of the two hinder the other? */
bool admission_conflict(const struct admission_party *a, const struct admission_party *b);
/* The one of p[0..n-1] that p[self], who waits, has to wait for; n: nobody, it begins. That is one
 * who runs and is in conflict with it, or one who waits, is in conflict with it and came before:
 * in order of arrival, of equals the lower pid first. One who is in conflict with nobody
 * overtakes: that is what the methods are about. */
unsigned admission_waits_for(const struct admission_party *p, unsigned n, unsigned self);
/* Will most of `footprint` bytes (0: not known) lie on PM, where `dram` bytes of DRAM are to be
 * had? */
bool admission_on_pm(uint64_t footprint, uint64_t dram);

#endif
