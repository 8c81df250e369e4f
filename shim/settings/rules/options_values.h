/* SPDX-License-Identifier: BSD-2-Clause
 * Values of options, from text and to text, one parser a type. For options.c. Pure. */
#ifndef HYBRID_SETTINGS_RULES_OPTIONS_VALUES_H
#define HYBRID_SETTINGS_RULES_OPTIONS_VALUES_H

#include "settings/rules/options.h"

/* Parse v into dst (NULL: only check it). NULL when it is good, otherwise what
 * is wrong with it, to be read behind the value; dst is then untouched. */
struct row;
typedef const char *(*parse_fn)(const struct row *row, const char *v, size_t len, void *dst);

struct row {
    struct hy_opt_info info;
    parse_fn parse;
    size_t offset; /* of the field in struct hy_settings */
};

const char *option_parse_amount(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_choice(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_directories(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_flag(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_machine(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_memory(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_name(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_number(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_path(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_report(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_size(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_source(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_threads(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_time(const struct row *row, const char *v, size_t len, void *dst);
const char *option_parse_wait(const struct row *row, const char *v, size_t len, void *dst);

/* What a value may be, as a sentence's end. */
void option_allowed(const struct row *row, char *buf, size_t cap);
/* As options_format; `field` is the one of the row. */
void option_format(const struct row *row, const void *field, char *buf, size_t cap);

#endif
