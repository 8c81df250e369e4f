/* SPDX-License-Identifier: BSD-2-Clause
 * Values of options, from text and to text, one parser a type. For options.c. Pure. */
#ifndef HYBRID_SETTINGS_RULES_OPTIONS_VALUES_H
#define HYBRID_SETTINGS_RULES_OPTIONS_VALUES_H

#include "settings/rules/options.h"

struct row {
    struct hy_opt_info info;
    /* Parse v into dst (NULL: only check it). NULL when it is good, otherwise what
     * is wrong with it, to be read behind the value; dst is then untouched. */
    const char *(*parse)(const struct row *row, const char *v, size_t len, void *dst);
    size_t offset; /* of the field in struct hy_settings */
};

extern HY_HIDDEN const struct row option_rows[OPT_COUNT];
/* What a value may be, as a sentence's end. */
void option_allowed(const struct row *row, char *buf, size_t cap);
/* As options_format; `field` is the one of the row. */
void option_format(const struct row *row, const void *field, char *buf, size_t cap);

#endif
