/* SPDX-License-Identifier: BSD-2-Clause
 * [modules] of a profile, which the library passes over. Pure. */
#ifndef HYBRID_TOOLS_CTL_RULES_PROFILE_MODULES_H
#define HYBRID_TOOLS_CTL_RULES_PROFILE_MODULES_H

#include "settings/rules/profile.h"

/* Of a profile's text, at most `cap`; how many. */
unsigned profile_modules(const char *text, size_t len, struct profile_module *ret, unsigned cap);

#endif
