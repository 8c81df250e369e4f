/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/fields.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum unit { COUNT, BYTES, PAGES, NS, MILLI, FLAG, TEXT, CLASS, MOVES };
enum type { T_BOOL, T_U32, T_I32, T_U64, T_I64, T_DOUBLE, T_CHARS, T_POINTER };

/* Arrays, not pointers: the loader would have to relocate these at every start. */
struct field {
    char section[16], key[28], sample[16];
    uint8_t unit, type;
    uint16_t offset, bytes;
};

#define TYPE_OF(owner, member)                                                                     \
    _Generic(((owner *)0)->member, bool                                                            \
             : T_BOOL, unsigned                                                                    \
             : T_U32, int                                                                          \
             : T_I32, uint64_t                                                                     \
             : T_U64, uint64_t *                                                                   \
             : T_U64, int64_t                                                                      \
             : T_I64, double                                                                       \
             : T_DOUBLE, double *                                                                  \
             : T_DOUBLE, char *                                                                    \
             : T_CHARS, const char *                                                               \
             : T_POINTER)
#define PART(section_, owner, member, key_, unit_, what)                                           \
    {#section_,                                                                                    \
     #key_,                                                                                        \
     "",                                                                                           \
     unit_,                                                                                        \
     TYPE_OF(owner, member),                                                                       \
     offsetof(owner, member),                                                                      \
     sizeof(((owner *)0)->member)},
#define FIELD(section_, key_, sample_, unit_, member, what)                                        \
    {#section_,                                                                                    \
     #key_,                                                                                        \
     sample_,                                                                                      \
     unit_,                                                                                        \
     TYPE_OF(struct report, member),                                                               \
     offsetof(struct report, member),                                                              \
     sizeof(((struct report *)0)->member)},
static const struct field fields[] = {
#include "report/fields.def"
};
#undef FIELD
#undef PART

static_assert(sizeof(struct report) <= UINT16_MAX, "offsets are of 16 bits");
static_assert(offsetof(struct report, now) == 0, "samples have a struct observed only");

#define EACH(f) (const struct field *f = fields; f < fields + HY_ARRAY_SIZE(fields); f++)

static unsigned elements(const struct field *f)
{
    switch ((enum type)f->type) {
    case T_U64:
    case T_DOUBLE:
        return f->bytes / 8;
    default:
        return 1;
    }
}

static const char *word(const struct field *f, const void *base)
{
    static const char *const moves[] = {"idle", "on", "off"};
    const char *at = (const char *)base + f->offset, *text;

    if (f->unit == CLASS)
        return hy_class_name(*(const enum hy_class *)at);
    if (f->unit == MOVES)
        return moves[*(const enum migrate_state *)at];
    if (f->type == T_CHARS)
        return at;
    memcpy(&text, at, sizeof(text));
    return text ? text : "";
}

static bool is_word(const struct field *f)
{
    return f->unit == CLASS || f->unit == MOVES || f->unit == TEXT;
}

static uint64_t from_double(const struct field *f, double v)
{
    if (f->unit == MILLI)
        return hy_milli(v);
    return v > 0 && v < 1e18 ? (uint64_t)(v + 0.5) : 0;
}

/* Of a negative one, its two's complement. */
static uint64_t number(const struct field *f, const void *base, unsigned i)
{
    const char *at = (const char *)base + f->offset;
    uint64_t v = 0;

    switch ((enum type)f->type) {
    case T_BOOL:
        return *(const bool *)at;
    case T_U32:
        v = *(const uint32_t *)at;
        break;
    case T_I32:
        v = (uint64_t) * (const int32_t *)at;
        break;
    case T_U64:
    case T_I64:
        v = ((const uint64_t *)at)[i];
        break;
    case T_DOUBLE:
        v = from_double(f, ((const double *)at)[i]);
        break;
    case T_CHARS:
    case T_POINTER:
        return word(f, base)[0] != '\0';
    }
    return f->unit == PAGES ? v * HY_PAGE : v;
}

static bool is_signed(const struct field *f)
{
    return f->type == T_I32 || f->type == T_I64;
}

static void put_number(struct textbuf *o, const struct field *f, uint64_t v)
{
    if (is_signed(f))
        textbuf_add(o, "%" PRId64, (int64_t)v);
    else
        textbuf_add(o, "%" PRIu64, v);
}

static void put_value(struct textbuf *o, const struct field *f, const void *base)
{
    unsigned n = elements(f);

    if (is_word(f)) {
        textbuf_json(o, word(f, base));
        return;
    }
    textbuf_add(o, n > 1 ? "[" : "");
    for (unsigned i = 0; i < n; i++) {
        textbuf_add(o, i ? ", " : "");
        put_number(o, f, number(f, base, i));
    }
    textbuf_add(o, n > 1 ? "]" : "");
}

void fields_json(struct textbuf *o, const char *section, const void *base)
{
    const char *separator = "";

    for
        EACH(f)
        {
            if (strcmp(f->section, section) != 0)
                continue;
            textbuf_add(o, "%s\"%s\": ", separator, f->key);
            separator = ", ";
            if (f->unit == FLAG)
                textbuf_add(o, number(f, base, 0) ? "true" : "false");
            else
                put_value(o, f, base);
        }
}

void fields_samples(struct textbuf *o, const struct observed *base)
{
    for
        EACH(f)
    if (f->sample[0]) {
        textbuf_add(o, ", \"%s\": ", f->sample);
        put_value(o, f, base);
    }
}

/* --- as a person reads it --- */

void fields_bytes(uint64_t bytes, char *buf, size_t cap)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB"};
    uint64_t of[] = {HY_KIB, HY_MIB, HY_GIB};
    unsigned u = bytes >= 10 * HY_GIB ? 2 : bytes >= 10 * HY_MIB ? 1 : 0;

    if (bytes >= UINT64_MAX / 16) {
        (void)snprintf(buf, cap, "-");
        return;
    }
    uint64_t tenths = (bytes * 10 + of[u] / 2) / of[u];
    (void)snprintf(buf, cap, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10), unit[u]);
}

static void human_time(int64_t ns, char *buf, size_t cap)
{
    static const char *const unit[] = {"us", "ms", "s"};
    uint64_t of = 1000, v = (uint64_t)(ns < 0 ? -ns : ns);
    unsigned u = 0;

    for (; v >= of * 1000 && u < 2; u++)
        of *= 1000;
    uint64_t tenths = v / of * 10 + (v % of * 10 + of / 2) / of;
    (void)snprintf(buf, cap, "%s%" PRIu64 ".%u %s", ns < 0 ? "-" : "", tenths / 10,
                   (unsigned)(tenths % 10), unit[u]);
}

static void human(const struct field *f, const void *base, char *buf, size_t cap)
{
    uint64_t v = number(f, base, 0);

    buf[0] = '\0';
    switch ((enum unit)f->unit) {
    case BYTES:
    case PAGES:
        fields_bytes(v, buf, cap);
        break;
    case NS:
        human_time((int64_t)v, buf, cap);
        break;
    case MILLI:
        (void)snprintf(buf, cap, "%" PRIu64 ".%02u", (v + 5) / 1000,
                       (unsigned)((v + 5) % 1000 / 10));
        break;
    case COUNT:
        (void)snprintf(buf, cap, is_signed(f) ? "%" PRId64 : "%" PRIu64, v);
        break;
    case FLAG: /* only whether there is one */
    case TEXT:
    case CLASS:
    case MOVES:
        break;
    }
}

/* The field, and the struct that it is in. */
static const struct field *find(const struct report *r, const char *name, size_t len,
                                const void **ret_base)
{
    const char *dot = memchr(name, '.', len);
    size_t n = dot ? (size_t)(dot - name) : 0, rest = len - n - 1;
    const char *section = name;

    *ret_base = r;
    for (int t = 0; t < HY_TIERS && dot; t++)
        if (n == strlen(hy_tier_name((enum hy_tier)t)) &&
            memcmp(name, hy_tier_name((enum hy_tier)t), n) == 0) {
            *ret_base = &r->tier[t];
            section = "tier";
            n = strlen(section);
        }
    for
        EACH(f)
    if (dot && strlen(f->section) == n && memcmp(f->section, section, n) == 0 &&
        strlen(f->key) == rest && memcmp(f->key, dot + 1, rest) == 0)
        return f;
    return NULL;
}

bool fields_text(struct textbuf *o, const struct report *r, const char *name, size_t len)
{
    const void *base;
    const struct field *f = find(r, name, len, &base);
    char buf[32];

    if (!f)
        return false;
    human(f, base, buf, sizeof(buf));
    textbuf_add(o, "%s", is_word(f) ? word(f, base) : buf);
    return true;
}

bool fields_has(const struct report *r, const char *name, size_t len)
{
    const void *base;
    const struct field *f = find(r, name, len, &base);

    return f && (is_word(f) ? word(f, base)[0] != '\0' : number(f, base, 0) != 0);
}

void fields_tiers(struct textbuf *o, const struct report *r)
{
    char name[sizeof(fields->key)], dram[32], pm[32];

    textbuf_add(o, "  %-14s %14s %14s\n", "", "DRAM", "PM");
    for
        EACH(f)
        {
            if (strcmp(f->section, "tier") != 0)
                continue;
            memcpy(name, f->key, sizeof(name));
            for (char *c = name; *c; c++)
                *c = *c == '_' ? ' ' : *c;
            human(f, &r->tier[HY_DRAM], dram, sizeof(dram));
            human(f, &r->tier[HY_PM], pm, sizeof(pm));
            textbuf_add(o, "  %-14s %14s %14s\n", name, dram, pm);
        }
}
