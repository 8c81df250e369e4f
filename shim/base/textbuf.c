/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/textbuf.h"

#include <stdarg.h>
#include <stdio.h>

void textbuf_add(struct textbuf *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (t->full)
        return;
    va_start(ap, fmt);
    n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
    va_end(ap);
    t->full = n < 0 || (size_t)n >= t->cap - t->len;
    if (t->full)
        t->buf[t->len] = '\0';
    else
        t->len += (size_t)n;
}

void textbuf_json(struct textbuf *t, const char *s)
{
    textbuf_add(t, "\"");
    for (; *s && !t->full; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            textbuf_add(t, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            textbuf_add(t, "\\u%04x", c);
        else
            textbuf_add(t, "%c", c);
    }
    textbuf_add(t, "\"");
}
