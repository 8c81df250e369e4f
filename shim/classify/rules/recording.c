/* SPDX-License-Identifier: BSD-2-Clause */
#include "classify/rules/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define MAGIC     "hybrid-recording "
#define MAGIC_LEN (sizeof(MAGIC) - 1)

static const char *const names[WINDOW_FIELD_COUNT] = {
#define WINDOW_X(field, name, what) name,
    WINDOW_FIELDS(WINDOW_X)
#undef WINDOW_X
};

static int wrong(const struct recording *r, const char *what, const char *text, size_t len,
                 hy_diag_fn diag, void *ctx)
{
    char quoted[TEXT_QUOTE_CAP];

    text_quote(text, len, quoted, sizeof(quoted));
    options_tell(diag, ctx, "recording, line %u: %s: \"%s\"", r->line, what, quoted);
    return -EINVAL;
}

static bool take_line(struct recording *r, const char **ret, size_t *ret_len)
{
    bool found = text_next_line(&r->at, r->end, ret, ret_len);

    r->line += found;
    return found;
}

int recording_open(struct recording *r, const char *text, size_t len, hy_diag_fn diag, void *ctx)
{
    const char *line = "";
    size_t n = 0;
    uint64_t version;

    *r = (struct recording){.at = text, .end = len > 0 ? text + len : text};
    (void)take_line(r, &line, &n);
    if (n <= MAGIC_LEN || memcmp(line, MAGIC, MAGIC_LEN) != 0)
        return wrong(r, "this is no recording", line, n, diag, ctx);
    if (text_parse_u64(line + MAGIC_LEN, n - MAGIC_LEN, &version) < 0 ||
        version != RECORDING_VERSION)
        return wrong(r, "the recording is of another version", line, n, diag, ctx);
    return 0;
}

static int field_named(const char *s, size_t len)
{
    for (int f = 0; f < WINDOW_FIELD_COUNT; f++)
        if (strlen(names[f]) == len && memcmp(names[f], s, len) == 0)
            return f;
    return -1;
}

static int read_window(const struct recording *r, const char *s, const char *end,
                       struct window *ret, hy_diag_fn diag, void *ctx)
{
    struct window w = {0};
    uint64_t v;

    while (s < end) {
        const char *word = s, *eq;
        while (s < end && *s != ' ' && *s != '\t')
            s++;
        eq = memchr(word, '=', (size_t)(s - word));
        if (!eq || text_parse_u64(eq + 1, (size_t)(s - eq - 1), &v) < 0)
            return wrong(r, "this is not NAME=NUMBER", word, (size_t)(s - word), diag, ctx);
        int f = field_named(word, (size_t)(eq - word));
        if (f < 0)
            return wrong(r, "there is no such count", word, (size_t)(eq - word), diag, ctx);
        window_set(&w, (enum window_field)f, v);
        while (s < end && (*s == ' ' || *s == '\t'))
            s++;
    }
    if (w.have == 0)
        return wrong(r, "the window has no counts", "w", 1, diag, ctx);
    *ret = w;
    return 1;
}

int recording_next(struct recording *r, struct window *ret, hy_diag_fn diag, void *ctx)
{
    const char *line;
    size_t n;

    while (take_line(r, &line, &n)) {
        if (n == 0 || *line == '#')
            continue;
        if (n > 2 && line[0] == 'w' && (line[1] == ' ' || line[1] == '\t')) {
            const char *s = line + 1;
            while (*s == ' ' || *s == '\t') /* something follows: blanks at the end are gone */
                s++;
            return read_window(r, s, line + n, ret, diag, ctx);
        }
        if (n > 7 && memcmp(line, "source ", 7) == 0 && n - 7 < sizeof(r->source) &&
            !memchr(line, '\0', n)) {
            memcpy(r->source, line + 7, n - 7);
            r->source[n - 7] = '\0';
            if (!text_has_control(r->source, n - 7))
                continue;
            r->source[0] = '\0';
        }
        return wrong(r, "the line is neither a window nor a source nor a comment", line, n, diag,
                     ctx);
    }
    return 0;
}

size_t recording_write_header(const char *source, char *buf, size_t cap)
{
    int n = snprintf(buf, cap, MAGIC "%d\nsource %.63s\n", RECORDING_VERSION,
                     *source ? source : "unknown");

    return n < 0 ? 0 : HY_MIN((size_t)n, cap - 1);
}

size_t recording_write_window(const struct window *w, char *buf, size_t cap)
{
    size_t at = (size_t)snprintf(buf, cap, "w");

    for (int f = 0; f < WINDOW_FIELD_COUNT && at < cap; f++)
        if (window_has(w, (enum window_field)f))
            at += (size_t)snprintf(buf + at, cap - at, " %s=%llu", names[f],
                                   (unsigned long long)w->value[f]);
    if (at < cap)
        at += (size_t)snprintf(buf + at, cap - at, "\n");
    return HY_MIN(at, cap - 1);
}
