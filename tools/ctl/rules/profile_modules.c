/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ctl/rules/profile_modules.h"

#include <string.h>

#include "base/text.h"

/* The value of "KEY = PATH" for a line of [modules]; false for any other line. */
static bool module_line(const char *line, size_t len, struct profile_module *ret)
{
    const char *eq = memchr(line, '=', len), *end = line + len;
    char hex[2 * BUILD_ID_MAX + 1];
    size_t n;
    unsigned id_len;

    if (!eq)
        return false;
    for (n = (size_t)(eq - line); n > 0 && line[n - 1] == ' '; n--)
        ;
    for (eq++; eq < end && *eq == ' '; eq++)
        ;
    if (n >= sizeof(hex) || eq == end || (size_t)(end - eq) >= sizeof(ret->path) ||
        text_has_control(eq, (size_t)(end - eq)))
        return false;
    memcpy(hex, line, n);
    hex[n] = '\0';
    if (build_id_parse(hex, ret->id, &id_len) < 0)
        return false;
    memcpy(ret->path, eq, (size_t)(end - eq));
    ret->path[end - eq] = '\0';
    return true;
}

unsigned profile_modules(const char *text, size_t len, struct profile_module *ret, unsigned cap)
{
    const char *end = text + len;
    bool inside = false;
    unsigned n = 0;

    while (text < end && n < cap) {
        const char *stop = memchr(text, '\n', (size_t)(end - text)) ?: end;
        const char *line = text, *last = stop;

        text = stop + (stop < end);
        while (line < last && (*line == ' ' || *line == '\t'))
            line++;
        while (last > line && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
            last--;
        if (line < last && *line == '[')
            inside = (size_t)(last - line) >= 9 && memcmp(line, "[modules]", 9) == 0;
        else if (inside && module_line(line, (size_t)(last - line), &ret[n]))
            n++;
    }
    return n;
}
