/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings/rules/options_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/text.h"

#define ONLY_ANY false
#define ONLY_ENV true

static const char *store(void *dst, const void *value, size_t bytes)
{
    if (dst)
        memcpy(dst, value, bytes);
    return NULL;
}

static const char *option_parse_choice(const struct row *row, const char *v, size_t len, void *dst)
{
    int n = text_choice(row->info.allowed, v, len);

    return n < 0 ? "is not known" : store(dst, &n, sizeof(n)); /* an int or an enum */
}

static const char *option_parse_flag(const struct row *row, const char *v, size_t len, void *dst)
{
    int n = text_choice(row->info.allowed, v, len);
    bool on = n != 0;

    return n < 0 ? "is neither 0 nor 1" : store(dst, &on, sizeof(on));
}

/* `r`: of the parser that found n. */
static const char *take_number(const struct row *row, int r, uint64_t n, void *dst,
                               const char *more, const char *less)
{
    if (r == -ERANGE || n > row->info.max)
        return more;
    return n < row->info.min ? less : store(dst, &n, sizeof(n));
}

static const char *option_parse_size(const struct row *row, const char *v, size_t len, void *dst)
{
    uint64_t n = 0;
    int r = text_parse_size(v, len, &n);

    if (r == -EINVAL)
        return "is not a size";
    return take_number(row, r, n, dst, "is too large", "is too small");
}

static const char *option_parse_time(const struct row *row, const char *v, size_t len, void *dst)
{
    uint64_t ns = 0;
    int r = text_parse_time(v, len, &ns);

    if (r == -EINVAL)
        return "is not a time";
    return take_number(row, r, ns, dst, "is too long", "is too short");
}

static const char *option_parse_amount(const struct row *row, const char *v, size_t len, void *dst)
{
    struct hy_amount a = {.is_percent = len > 0 && v[len - 1] == '%'};

    if (a.is_percent) {
        int r = text_parse_u64(v, len - 1, &a.value);

        if (r == -EINVAL)
            return "is not a whole percentage";
        if (r < 0 || a.value > 100)
            return "is more than 100%";
    } else {
        const char *why = option_parse_size(row, v, len, &a.value);

        if (why)
            return why;
    }
    return store(dst, &a, sizeof(a));
}

static const char *parse_nodes(const char *v, size_t len, uint64_t *ret_mask)
{
    const char *end = v + len;
    uint64_t mask = 0, node;

    for (;;) {
        size_t n = (size_t)((const char *)(memchr(v, ',', (size_t)(end - v)) ?: end) - v);

        if (text_parse_u64(v, n, &node) == -EINVAL)
            return "is not a list of node numbers";
        if (text_parse_u64(v, n, &node) < 0 || node > 63)
            return "names a node above 63";
        mask |= (uint64_t)1 << node;
        if (v + n == end)
            break;
        v += n + 1;
    }
    *ret_mask = mask;
    return NULL;
}

static const char *option_parse_memory(const struct row *row, const char *v, size_t len, void *dst)
{
    static const char *const words[] = {"auto", "none", "node", "file", "emulated"};
    size_t word = text_find(v, len, ':');
    const char *arg = word < len ? v + word + 1 : NULL;
    size_t arg_len = arg ? len - word - 1 : 0;
    uint64_t nodes = 0, bytes = 0;
    const char *why = NULL;
    unsigned kind = 0;

    while (kind < HY_ARRAY_SIZE(words) &&
           !(text_same(words[kind], v, word) && words[kind][word] == '\0'))
        kind++;
    if (kind == HY_ARRAY_SIZE(words))
        return "is not known";
    if (!arg && (kind == HY_PM_NODE || kind == HY_PM_FILE))
        return kind == HY_PM_NODE ? "lacks the node, as in node:1" : "lacks the directory";
    if (arg && kind <= HY_PM_NONE)
        return "has something behind the word";
    if (kind == HY_PM_NODE)
        why = parse_nodes(arg, arg_len, &nodes);
    else if (kind == HY_PM_FILE && arg[0] != '/')
        why = "does not name an absolute path";
    else if (kind == HY_PM_EMULATED && arg)
        why = option_parse_size(row, arg, arg_len, &bytes);
    if (why)
        return why;
    if (dst) {
        struct hy_pm_spec *pm = dst;

        pm->kind = (enum hy_pm_kind)kind;
        pm->nodes = nodes;
        pm->bytes = bytes;
        pm->dir[0] = '\0'; /* and no page more than that of the kind */
        if (kind == HY_PM_FILE)
            memcpy(pm->dir, arg, arg_len + 1);
    }
    return NULL;
}

static const char *option_parse_threads(const struct row *row, const char *v, size_t len, void *dst)
{
    struct hy_thread_spec t = {.off = text_is(v, "off")};
    uint64_t n = 0;

    if (!t.off && !text_is(v, "auto")) {
        int r = text_parse_u64(v, len, &n);
        const char *why = r == -EINVAL
                              ? "is not a number of threads"
                              : take_number(row, r, n, NULL, "is too large", "is too small");

        if (why)
            return why;
    }
    t.count = (uint32_t)n;
    return store(dst, &t, sizeof(t));
}

static const char *option_parse_wait(const struct row *row, const char *v, size_t len, void *dst)
{
    static const char wait[] = "wait:";
    const size_t n = sizeof(wait) - 1;
    uint64_t s = 0;

    if (!text_is(v, "off") &&
        (len <= n || !text_same(v, wait, n) || text_parse_u64(v + n, len - n, &s) == -EINVAL))
        return "is not off or wait: and seconds";
    if (s > row->info.max)
        return "is too long";
    if (s < row->info.min && len > n)
        return "is too short";
    s *= 1000000000ull;
    return store(dst, &s, sizeof(s));
}

/* The texts below are shorter than HY_PATH_MAX and free of control characters:
 * options_set has looked. */
static const char *store_text(const struct row *row, const char *v, size_t len, void *dst)
{
    const size_t first = offsetof(struct hy_settings, profile);

    if (dst && (len == 0 || v == row->info.dflt))
        *(const char **)dst = len ? v : "";
    else if (dst) {
        struct hy_settings *s = (void *)((char *)dst - row->offset);
        char *own = s->text[(row->offset - first) / sizeof(const char *)];

        *(const char **)dst = memcpy(own, v, len + 1);
    }
    return NULL;
}

static const char *option_parse_name(const struct row *row, const char *v, size_t len, void *dst)
{
    if (text_is(v, "none"))
        return store_text(row, "", 0, dst);
    return v[len - 1] == '/' ? "is a directory, not a file" : store_text(row, v, len, dst);
}

static const char *option_parse_directories(const struct row *row, const char *v, size_t len,
                                            void *dst)
{
    for (size_t at = v[0] == ':'; at <= len; at += text_find(v + at, len - at, ':') + 1)
        if (v[at] != '/')
            return "has an entry that is not an absolute path";
    return store_text(row, v, len, dst);
}

static const char *option_parse_path(const struct row *row, const char *v, size_t len, void *dst)
{
    if (v[0] != '/' && !text_is(v, "auto") && !text_is(v, "none"))
        return "is not an absolute path";
    return store_text(row, v, len, dst);
}

static const char *option_parse_report(const struct row *row, const char *v, size_t len, void *dst)
{
    /* A slip like 2 or -1 must not become a file of that name. */
    if (!text_is(v, "0") && !text_is(v, "1") && (v[0] == '-' || strspn(v, "0123456789") == len))
        return "is not a file name (write ./ before it if it is)";
    return v[len - 1] == '/' ? "is a directory, not a file" : store_text(row, v, len, dst);
}

static const char *option_parse_machine(const struct row *row, const char *v, size_t len, void *dst)
{
    bool known = text_choice(row->info.allowed, v, len) >= 0 && !text_is(v, "FILE");

    if (v[0] != '/' && !known)
        return "is neither a technology nor an absolute path";
    return v[len - 1] == '/' ? "is a directory, not a file" : store_text(row, v, len, dst);
}

static const char *option_parse_number(const struct row *row, const char *v, size_t len, void *dst)
{
    double n;

    if (text_parse_decimal(v, len, &n) < 0)
        return "is not a decimal number";
    if (n < (double)row->info.min || n > (double)row->info.max)
        return n < (double)row->info.min ? "is too small" : "is too large";
    return store(dst, &n, sizeof(n));
}

/* Words, the last with a path behind its colon. */
static const char *option_parse_source(const struct row *row, const char *v, size_t len, void *dst)
{
    const char *last = row->info.allowed, *end = last;
    while (*end != ':')
        if (*end++ == '|')
            last = end;
    size_t n = (size_t)(end - last) + 1;
    bool path = len >= n && text_same(v, last, n);

    if (path && v[n] != '/')
        return "does not name an absolute path";
    if (!path && text_choice(row->info.allowed, v, len) < 0)
        return "is not known";
    return store_text(row, v, len, dst);
}

const struct row option_rows[OPT_COUNT] = {
#define HY_OPT(id, key, field, type, where, dflt, lo, hi, allowed, unit, help)                     \
    {{"HYBRID_" #id, #key, dflt, allowed, sizeof(dflt) - 1, ONLY_##where, lo, hi},                 \
     option_parse_##type,                                                                          \
     offsetof(struct hy_settings, field)},
#include "settings/rules/options.def"
#undef HY_OPT
};

/* option_parse_choice writes an int into enum fields. */
_Static_assert(sizeof(enum hy_policy) == sizeof(int) && sizeof(enum hy_class) == sizeof(int) &&
                   sizeof(enum hy_dram_alloc) == sizeof(int) &&
                   sizeof(enum hy_tristate) == sizeof(int) &&
                   sizeof(enum hy_migrate) == sizeof(int),
               "enums are ints");

_Static_assert(offsetof(struct hy_settings, record) - offsetof(struct hy_settings, profile) ==
                   (HY_TEXTS - 1) * sizeof(const char *),
               "each text has its place");

void option_allowed(const struct row *row, char *buf, size_t cap)
{
    char lo[24], hi[24];

    text_format_size(row->info.min, lo, sizeof(lo));
    text_format_size(row->info.max, hi, sizeof(hi));
    if (row->parse == option_parse_size)
        snprintf(buf, cap, "a size from %s to %s, such as 64K, 16M or 8G", lo, hi);
    else if (row->parse == option_parse_amount)
        snprintf(buf, cap, "a size up to %s, such as 512M or 8G, or a percentage up to 100%%", hi);
    else if (row->parse == option_parse_time) {
        text_format_time(row->info.min, lo, sizeof(lo));
        text_format_time(row->info.max, hi, sizeof(hi));
        snprintf(buf, cap, "a time from %s to %s, such as 10ms, 2s or 1m", lo, hi);
    } else if (row->parse == option_parse_wait)
        snprintf(buf, cap, "off, or wait:SECONDS with %u to %u", (unsigned)row->info.min,
                 (unsigned)row->info.max);
    else if (row->parse == option_parse_threads)
        snprintf(buf, cap, "auto, off, or a number from %u to %u", (unsigned)row->info.min,
                 (unsigned)row->info.max);
    else
        text_choices_prose(row->info.allowed, buf, cap);
}

static void format_pm(const struct hy_pm_spec *pm, char *buf, size_t cap)
{
    char size[24], nodes[3 * 64 + 1];
    size_t out = 0;

    switch (pm->kind) {
    case HY_PM_NODE:
        nodes[0] = '\0';
        for (unsigned i = 0; i < 64; i++)
            if (pm->nodes >> i & 1)
                out +=
                    (size_t)snprintf(nodes + out, sizeof(nodes) - out, "%s%u", out ? "," : "", i);
        snprintf(buf, cap, "node:%s", nodes);
        return;
    case HY_PM_FILE:
        snprintf(buf, cap, "file:%s", pm->dir);
        return;
    case HY_PM_EMULATED:
        text_format_size(pm->bytes, size, sizeof(size));
        snprintf(buf, cap, "emulated%s%s", pm->bytes ? ":" : "", pm->bytes ? size : "");
        return;
    case HY_PM_AUTO:
    case HY_PM_NONE:
        break;
    }
    snprintf(buf, cap, "%s", pm->kind == HY_PM_NONE ? "none" : "auto");
}

void option_format(const struct row *row, const void *field, char *buf, size_t cap)
{
    const struct hy_amount *amount = field;
    const char *word = "";
    uint64_t bytes;
    int n = 0;

    if (row->parse == option_parse_choice || row->parse == option_parse_flag) {
        if (row->parse == option_parse_flag)
            n = *(const bool *)field;
        else
            memcpy(&n, field, sizeof(n));
        size_t len = text_choice_word(row->info.allowed, n, &word);

        snprintf(buf, cap, "%.*s", (int)len, word);
    } else if (row->parse == option_parse_amount && amount->is_percent) {
        snprintf(buf, cap, "%u%%", (unsigned)amount->value);
    } else if (row->parse == option_parse_amount) {
        text_format_size(amount->value, buf, cap);
    } else if (row->parse == option_parse_size) {
        memcpy(&bytes, field, sizeof(bytes));
        text_format_size(bytes, buf, cap);
    } else if (row->parse == option_parse_time) {
        memcpy(&bytes, field, sizeof(bytes));
        text_format_time(bytes, buf, cap);
    } else if (row->parse == option_parse_memory) {
        format_pm(field, buf, cap);
    } else if (row->parse == option_parse_number) {
        unsigned milli = (unsigned)(*(const double *)field * 1000 + 0.5);

        size_t len = (size_t)snprintf(buf, cap, "%u.%03u", milli / 1000, milli % 1000);

        while (len > 1 && len < cap && buf[len - 1] == '0') /* 1.500 as 1.5, 8.000 as 8 */
            buf[--len] = '\0';
        if (len > 1 && len < cap && buf[len - 1] == '.')
            buf[len - 1] = '\0';
    } else if (row->parse == option_parse_wait) {
        uint64_t wait = *(const uint64_t *)field / 1000000000ull;

        snprintf(buf, cap, wait ? "wait:%llu" : "off", (unsigned long long)wait);
    } else if (row->parse == option_parse_threads) {
        const struct hy_thread_spec *t = field;

        if (t->count)
            snprintf(buf, cap, "%u", (unsigned)t->count);
        else
            snprintf(buf, cap, "%s", t->off ? "off" : "auto");
    } else {
        const char *text = *(const char *const *)field;

        snprintf(buf, cap, "%s", *text ? text : row->info.dflt);
    }
}
