/* SPDX-License-Identifier: BSD-2-Clause
 * What tests of options share: settings, and what is said about them. */
#ifndef HY_TEST_OPTIONS_UTIL_H
#define HY_TEST_OPTIONS_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "settings/rules/options.h"

struct heard {
    unsigned n;
    char last[2048];
    char all[8192];
};

static void hear(void *ctx, const char *message)
{
    struct heard *h = ctx;

    h->n++;
    assert_true(strlen(message) > 0 && strlen(message) < 1024);
    for (const char *c = message; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    snprintf(h->last, sizeof(h->last), "%s", message);
    snprintf(h->all + strlen(h->all), sizeof(h->all) - strlen(h->all), "%s\n", message);
}

static inline void assert_has(const char *message, const char *part)
{
    if (!strstr(message, part))
        fail_msg("\"%s\" lacks \"%s\"", message, part);
}

static struct hy_settings s;

static inline int set(enum hy_opt_id id, const char *value, struct heard *h)
{
    memset(h, 0, sizeof(*h));
    return options_set(&s, id, value, HY_FROM_ENV, hear, h);
}

static inline int reset(void **state)
{
    (void)state;
    options_defaults(&s);
    return 0;
}

#endif
