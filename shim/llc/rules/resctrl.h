/* SPDX-License-Identifier: BSD-2-Clause
 * The text of resctrl's files (Linux, Documentation/arch/x86/resctrl.rst): masks of cache ways in
 * hexadecimal, and a group's schemata, a line for each resource with a mask for each cache:
 *
 *     MB:0=100;1=100
 *     L3:0=fff;1=fff
 *
 * L3DATA stands in place of L3 where code and data have ways of their own (cdp). Pure. */
#ifndef HYBRID_LLC_RULES_RESCTRL_H
#define HYBRID_LLC_RULES_RESCTRL_H

#include "base/types.h"

/* A file with one mask (info/L3/cbm_mask). -EINVAL: it is none. */
int resctrl_mask(const char *text, uint64_t *ret);
/* The most ways of a last-level cache that a group may fill. -ENODATA: no such line; -EINVAL. */
int resctrl_ways(const char *schemata, unsigned *ret_most);
/* The ways for what streams through a cache with those of `all`: a sixteenth (002, section 7.2),
 * but no fewer than the kernel takes (info/L3/min_cbm_bits), and no more than there are. */
unsigned resctrl_few(uint64_t all, unsigned least);
/* What to write to give a group so many ways of each cache, the lowest: devices use the highest on
 * most processors. Its length; -ENODATA, -EINVAL, -ENOSPC: `cap` is too small. */
int resctrl_narrow(const char *schemata, unsigned ways, char *buf, size_t cap);
/* The control group of /proc/PID/cpu_resctrl_groups: "" the default one, else its name. -ENODATA:
 * the file does not tell. */
int resctrl_group_name(const char *text, char *buf, size_t cap);

#endif
