/* SPDX-License-Identifier: BSD-2-Clause
 * Text put together in a buffer that never grows. What does not fit is left out whole, and
 * `full` says so. Pure; no locale but printf's, so numbers are written as integers. */
#ifndef HYBRID_BASE_TEXTBUF_H
#define HYBRID_BASE_TEXTBUF_H

#include "base/types.h"

struct textbuf {
    char *buf;
    size_t len, cap; /* a NUL follows at buf[len] */
    bool full;
};

void textbuf_add(struct textbuf *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As a JSON string with its quotes: what is no printable ASCII becomes \u00NN. */
void textbuf_json(struct textbuf *t, const char *s);

#endif
