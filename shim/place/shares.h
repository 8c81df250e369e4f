/* SPDX-License-Identifier: BSD-2-Clause
 * This process's part in dividing the DRAM by what it brings (rules/division.h): from what all
 * tell, how much it gives up, how much it leaves to others, and how much it may hold. Under the
 * lock of company.c, but for what is said to be from any thread. */
#ifndef HYBRID_PLACE_SHARES_H
#define HYBRID_PLACE_SHARES_H

#include "place/registry.h"
#include "place/rules/placement.h"

/* What Algorithm 1 works on, from what was read of all: DRAM that is on its way to others is not
 * free. Returns our place in it, one beyond the last when our slot is lost. */
unsigned shares_machine(const struct registry_view *v, struct place_machine *ret);
/* DRAM that others have given up for good, in all so far: CPU-bound ones, less what they took
 * since, and such as have ended. It counts from any number on, over UINT64_MAX as well. */
uint64_t shares_given(void);
/* Divided anew from what was just read of all; `self`: our place in it. */
void shares_divide(const struct registry_view *v, unsigned self);
/* Bytes that others gain more from than we, so that we give them up. */
uint64_t shares_asked(void);
/* From any thread: the most that we should hold, as things are (UINT64_MAX: whatever is free), and
 * whether somebody would gain by DRAM, so that it is worth knowing what our own gains us. */
uint64_t shares_most(void);
/* From any thread: so much we may hold of what is free, whatever others wish for. */
uint64_t shares_right(void);
bool shares_wanted(void);
void shares_child(void);

#endif
