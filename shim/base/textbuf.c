/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/textbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* Characters as they are; most of a report is such text, and a format costs 300 instructions. */
static void put(struct textbuf *t, const char *s, size_t n)
{
    if (t->full)
        return;
    t->full = n >= t->cap - t->len;
    if (!t->full) {
        memcpy(t->buf + t->len, s, n);
        t->len += n;
    }
    t->buf[t->len] = '\0';
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void textbuf_json(struct textbuf *t, const char *s)
{
    put(t, "\"", 1);
    while (*s && !t->full) {
        size_t n = 0;
        while (is_plain((unsigned char)s[n]))
            n++;
        put(t, s, n);
        s += n;
        unsigned char c = (unsigned char)*s;
        if (c == '\0')
            break;
        textbuf_add(t, c == '"' || c == '\\' ? "\\%c" : "\\u%04x", c);
        s++;
    }
    put(t, "\"", 1);
}
