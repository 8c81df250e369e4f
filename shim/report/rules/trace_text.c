/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/rules/trace_text.h"

#include <string.h>

/* A line's first bytes tell its kind. */
static const char *const head[TRACE_KINDS] = {"{\"line\": ", "{\"tick\": ", "{\"pass\": "};

void trace_begin(struct trace_text *t, char *buf, size_t cap)
{
    *t = (struct trace_text){.text = {.buf = buf, .cap = cap}, .every = 1};
    buf[0] = '\0';
}

bool trace_due(struct trace_text *t, enum trace_kind kind)
{
    return t->seen[kind]++ % t->every == 0;
}

static enum trace_kind kind_of(const char *line, size_t len)
{
    for (int k = TRACE_TICK; k < TRACE_KINDS; k++)
        if (len > strlen(head[k]) && memcmp(line, head[k], strlen(head[k])) == 0)
            return (enum trace_kind)k;
    return TRACE_OTHER;
}

/* Every second sample of each kind goes; the first stays. */
static void thin(struct trace_text *t)
{
    char *from = t->text.buf, *to = from, *end = from + t->text.len;
    unsigned number[TRACE_KINDS] = {0};

    while (from < end) {
        char *stop = memchr(from, '\n', (size_t)(end - from));
        size_t len = (stop ? (size_t)(stop - from) : (size_t)(end - from - 1)) + 1;
        enum trace_kind kind = kind_of(from, len);
        if (kind == TRACE_OTHER || number[kind]++ % 2 == 0) {
            memmove(to, from, len);
            to += len;
        }
        from += len;
    }
    t->text.len = (size_t)(to - t->text.buf);
    *to = '\0';
    t->every *= 2;
}

void trace_open(struct trace_text *t, enum trace_kind kind, const char *name)
{
    if (t->text.cap - t->text.len <= TRACE_LINE_CAP && t->every < 1u << 30)
        thin(t);
    t->text.full = t->text.cap - t->text.len <= TRACE_LINE_CAP;
    t->line = t->text.len;
    t->kind = kind;
    textbuf_add(&t->text, "%s\"%s\"", head[kind], name);
}

void trace_close(struct trace_text *t)
{
    textbuf_add(&t->text, "}\n");
    if (!t->text.full)
        return;
    t->text.len = t->line;
    t->text.buf[t->line] = '\0';
    t->text.full = false;
}
