/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings/rules/options_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define MESSAGE_CAP (HY_PATH_MAX + 256)
#define DETAIL_CAP  256

const struct hy_opt_info *options_info(enum hy_opt_id id)
{
    return (unsigned)id < OPT_COUNT ? &option_rows[id].info : NULL;
}

void options_defaults(struct hy_settings *s)
{
    memset(s, 0, sizeof(*s));
    options_begin(s);
}

void options_begin(struct hy_settings *s)
{
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const struct hy_opt_info *o = &option_rows[i].info;

        (void)option_rows[i].parse(&option_rows[i], o->dflt, o->dflt_len,
                                   (char *)s + option_rows[i].offset);
    }
}

int options_tell(hy_diag_fn diag, void *ctx, const char *fmt, ...)
{
    char message[MESSAGE_CAP];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    if (diag)
        diag(ctx, message);
    return 1;
}

void options_tell_at(hy_diag_fn diag, void *ctx, const char *kind, const char *file, unsigned line,
                     const char *fmt, va_list ap)
{
    char name[TEXT_QUOTE_CAP], what[768];

    text_quote(file, strlen(file), name, sizeof(name));
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    if (line > 0)
        options_tell(diag, ctx, "%s %s, line %u: %s", kind, name, line, what);
    else
        options_tell(diag, ctx, "%s %s: %s", kind, name, what);
}

static void tell_bad_value(const struct hy_settings *s, enum hy_opt_id id, const char *value,
                           const char *why, enum hy_source from, hy_diag_fn diag, void *ctx)
{
    static const char *const origin[] = {"the default", "from the profile", "as set before"};
    const struct row *row = &option_rows[id];
    char quoted[TEXT_QUOTE_CAP], used[TEXT_QUOTE_CAP], allowed[DETAIL_CAP], raw[HY_PATH_MAX + 16];
    bool empty = value[0] == '\0';

    text_quote(value, strlen(value), quoted, sizeof(quoted));
    option_allowed(row, allowed, sizeof(allowed));
    options_format(s, id, raw, sizeof(raw));
    text_quote(raw, strlen(raw), used, sizeof(used));
    options_tell(diag, ctx, "%s%s%s%s%s %s; allowed: %s; %s (%s) is used instead",
                 from == HY_FROM_PROFILE ? "the profile's " : "",
                 from == HY_FROM_PROFILE ? row->info.key : row->info.env, empty ? "" : "=\"",
                 quoted, empty ? "" : "\"", why, allowed, used, origin[s->source[id]]);
}

int options_set(struct hy_settings *s, enum hy_opt_id id, const char *value, enum hy_source from,
                hy_diag_fn diag, void *ctx)
{
    const struct row *row = &option_rows[id];
    bool wins = from >= s->source[id];
    const char *why;
    size_t len = 0;

    value = value ?: "";
    while (len < HY_PATH_MAX && value[len] != '\0')
        len++;
    if (from == HY_FROM_PROFILE && row->info.env_only) {
        options_tell(diag, ctx,
                     "%s cannot be set in a profile and is ignored there; set %s instead",
                     row->info.key, row->info.env);
        return -EINVAL;
    }
    if (len == 0)
        why = "is empty";
    else if (len == HY_PATH_MAX)
        why = "is too long";
    else if (text_has_control(value, len))
        why = "has control characters";
    else
        why = row->parse(row, value, len, wins ? (char *)s + row->offset : NULL);
    if (why) {
        tell_bad_value(s, id, value, why, from, diag, ctx);
        return -EINVAL;
    }
    if (wins)
        s->source[id] = from;
    return 0;
}

void options_format(const struct hy_settings *s, enum hy_opt_id id, char *buf, size_t cap)
{
    option_format(&option_rows[id], (const char *)s + option_rows[id].offset, buf, cap);
}
