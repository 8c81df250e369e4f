/* SPDX-License-Identifier: BSD-2-Clause
 * The text of a profile, and which of its sites are worth a place in it. What profile_parse
 * makes of the text is the profile again: numbers to three decimals, texts that the format
 * cannot hold left out. Pure; no allocation. */
#ifndef HYBRID_RECORD_RULES_PROFILE_WRITE_H
#define HYBRID_RECORD_RULES_PROFILE_WRITE_H

#include "settings/rules/profile.h"

/* Lines of an INI file that inih reads whole. */
#define PROFILE_LINE_MAX 198
/* Enough for any profile with `sites` sites. */
#define PROFILE_WRITE_CAP(sites) ((size_t)64 * HY_KIB + (size_t)(sites)*3 / 2 * HY_KIB)

/* `comment`: lines for the top, each becomes one that begins with '#'. The length; -ENOSPC.
 * Names of sites must differ (profile_number_sites). */
int64_t profile_write(const struct profile *p, const struct profile_module *modules,
                      unsigned n_modules, const char *comment, char *buf, size_t cap);

/* The most important sites first: by their largest share of the lines, of the live bytes
 * and of the bytes allocated. Those that have less than `share` of each, and those beyond
 * `most`, go; how many. */
unsigned profile_rank_sites(struct profile *p, double share, unsigned most);
/* Names without a name: s1, s2 ... */
void profile_number_sites(struct profile *p);

#endif
