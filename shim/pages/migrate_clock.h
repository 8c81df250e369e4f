/* SPDX-License-Identifier: BSD-2-Clause
 * The time of the pages' thread, and whether it goes on. */
#ifndef HYBRID_PAGES_MIGRATE_CLOCK_H
#define HYBRID_PAGES_MIGRATE_CLOCK_H

#include "base/types.h"

/* The program's: passes and rates mean the same on an emulated machine. */
uint64_t clock_now_ns(void);
/* What the calling thread has cost so far; on an emulated machine only its clock shows costs. */
uint64_t clock_spent_ns(void);
bool clock_goes_on(void);
/* What to do while it rests; it returns after how many ns to call it again. NULL: nothing. */
void clock_meanwhile(uint64_t (*fn)(void));
/* false: it is time to end. */
bool clock_rest_until(uint64_t due);

#endif
