/* SPDX-License-Identifier: BSD-2-Clause
 * What an emulated program may ask, if it wants to; none is needed. Declare them weak
 * to run outside the emulated machine as well. */
#ifndef PMEMU_H
#define PMEMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's virtual clock, ns. */
int64_t pmemu_vtime_ns(void);
/* Put the pages of a range on a medium, 0 DRAM, 1 PM: for allocators and policies
 * that move pages. 0 or -errno. Costs no virtual time by itself. */
int pmemu_set_tier(const void *address, size_t bytes, int tier);
int pmemu_tier_of(const void *address);

#ifdef __cplusplus
}
#endif

#endif
