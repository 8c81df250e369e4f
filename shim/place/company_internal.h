/* SPDX-License-Identifier: BSD-2-Clause
 * What company.c (DRAM that is claimed and wished for) and company_cpus.c (CPUs that others are
 * confined to) both need of this process's place in the registry. */
#ifndef HYBRID_PLACE_COMPANY_INTERNAL_H
#define HYBRID_PLACE_COMPANY_INTERNAL_H

#include <stdint.h>

#include "sys/lock.h"

/* What was read of all serves so long, and for 50 times as long as it took: with many participants
 * a look costs up to a millisecond. */
#define COMPANY_AGE_NS 10000000ull

/* The registry and what follows from it. Held during calls that ask the kernel. */
extern struct hy_lock company_lock;

/* Takes a slot, unless that was tried before; hy_pol.reg_state tells what came of it. */
void company_join_locked(void);
/* The machine as the registry shows it, at most so old; returns our place in it, or one beyond the
 * last when our slot is lost. */
unsigned company_read_locked(uint64_t max_age_ns);

#endif
