/* SPDX-License-Identifier: BSD-2-Clause
 * Output: messages, sizes, lines that fit the terminal, JSON, suggestions for misspelt words. */
#include "tools/ctl/ctl.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/env.h"

void ctl_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("hybridctl: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

const char *ctl_nearest(const char *name, const char *const *candidates, unsigned n)
{
    const char *best = NULL;
    unsigned best_distance = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned d = text_distance(name, strlen(name), candidates[i], strlen(candidates[i]));
        if (text_is_near(d, strlen(name)) && (!best || d < best_distance)) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}

const char *ctl_size(uint64_t bytes, char *buf, size_t cap)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    unsigned u = 0;
    double v = (double)bytes;
    while (v >= 1024 && u + 1 < HY_ARRAY_SIZE(unit)) {
        v /= 1024;
        u++;
    }
    snprintf(buf, cap, u == 0 || v >= 100 ? "%.0f %s" : "%.1f %s", v, unit[u]);
    return buf;
}

const char *ctl_short_size(uint64_t bytes, char buf[16])
{
    static const char unit[] = "BKMGTP";
    double v = (double)bytes;
    unsigned u = 0;

    for (; v >= 1000 && u + 2 < sizeof(unit); u++)
        v /= 1024;
    if (bytes == 0)
        snprintf(buf, 16, "-");
    else
        snprintf(buf, 16, u == 0 || v >= 99.95 ? "%.0f%c" : "%.1f%c", v, unit[u]);
    return buf;
}

void ctl_print_wrapped_from(const char *text, unsigned indent, unsigned width)
{
    unsigned column = 0;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column == 0)
            column = indent + (unsigned)printf("%.*s", (int)word, text);
        else if (column + 1 + word > width) {
            printf("\n%*s", (int)indent, "");
            column = 0;
            continue;
        } else
            column += (unsigned)printf(" %.*s", (int)word, text);
        text += word;
        text += *text == ' ';
    }
    putchar('\n');
}

void ctl_print_wrapped(const char *text, unsigned indent, unsigned width)
{
    printf("%*s", (int)indent, "");
    ctl_print_wrapped_from(text, indent, width);
}

void ctl_screen_size(unsigned *width, unsigned *height)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0)
        return;
    *width = w.ws_col > 0 ? w.ws_col : *width;
    *height = w.ws_row > 0 ? w.ws_row : *height;
}

bool ctl_use_colour(void)
{
    const char *no = env_get("NO_COLOR");
    const char *term = env_get("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

/* --- JSON ---------------------------------------------------------------- */

/* Length of the UTF-8 sequence at s, 0 if it is none. */
static unsigned utf8_length(const unsigned char *s)
{
    unsigned n = s[0] < 0x80                   ? 1
                 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                 : (s[0] & 0xF0) == 0xE0       ? 3
                 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                               : 0;
    for (unsigned i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) /* the final NUL ends it as well */
            return 0;
    }
    /* overlong forms, surrogates, above U+10FFFF */
    if ((n == 3 && s[0] == 0xE0 && s[1] < 0xA0) || (n == 3 && s[0] == 0xED && s[1] > 0x9F) ||
        (n == 4 && s[0] == 0xF0 && s[1] < 0x90) || (n == 4 && s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return n;
}

static void put_string(FILE *to, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    fputc('"', to);
    while (*s) {
        unsigned n = utf8_length(s);
        if (n == 0)
            fputs("\xEF\xBF\xBD", to);
        else if (*s == '"' || *s == '\\')
            fprintf(to, "\\%c", *s);
        else if (*s < 0x20)
            fprintf(to, "\\u%04x", *s);
        else
            fwrite(s, 1, n, to);
        s += n ? n : 1;
    }
    fputc('"', to);
}

static void begin_value(struct ctl_json *j, const char *key)
{
    if (j->depth > 0)
        fprintf(j->to, "%s\n%*s", j->first ? "" : ",", (int)j->depth * 2, "");
    j->first = false;
    if (key) {
        put_string(j->to, key);
        fputs(": ", j->to);
    }
}

void ctl_json_open(struct ctl_json *j, const char *key, char bracket)
{
    begin_value(j, key);
    fputc(bracket, j->to);
    j->depth++;
    j->first = true;
}

void ctl_json_close(struct ctl_json *j, char bracket)
{
    j->depth--;
    if (!j->first)
        fprintf(j->to, "\n%*s", (int)j->depth * 2, "");
    fputc(bracket, j->to);
    j->first = false;
    if (j->depth == 0)
        fputc('\n', j->to);
}

void ctl_json_text(struct ctl_json *j, const char *key, const char *value)
{
    begin_value(j, key);
    if (value)
        put_string(j->to, value);
    else
        fputs("null", j->to);
}

void ctl_json_number(struct ctl_json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    fprintf(j->to, "%" PRIu64, value);
}

void ctl_json_literal(struct ctl_json *j, const char *key, const char *value)
{
    begin_value(j, key);
    fputs(value, j->to);
}

void ctl_json_bool(struct ctl_json *j, const char *key, bool value)
{
    ctl_json_literal(j, key, value ? "true" : "false");
}
