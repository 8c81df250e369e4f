/* SPDX-License-Identifier: BSD-2-Clause
 * What is said about the options, for hybridctl and the manual: not in the library, where each
 * start of a program would pay for it. */
#ifndef HYBRID_TOOLS_CTL_RULES_OPTIONS_WORDS_H
#define HYBRID_TOOLS_CTL_RULES_OPTIONS_WORDS_H

#include "settings/rules/options.h"

struct hy_opt_words {
    const char *type, *unit, *help; /* unit "": none */
};
const struct hy_opt_words *options_words(enum hy_opt_id id); /* NULL beyond the last */

#endif
