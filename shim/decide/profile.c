/* SPDX-License-Identifier: BSD-2-Clause
 * inih takes lines apart; the reader that feeds it looks at each line first,
 * because inih itself cuts long lines and section names in two without a word,
 * says nothing of empty sections, gives the keys behind a broken header to the
 * section before, and takes an indented key for more text of the last one. */
#include "decide/profile.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cpuset.h"
#include "decide/text.h"

#define BUCKETS (2 * PROFILE_MAX_SITES) /* power of two, never more than half full */

enum section { SEC_NONE, SEC_SKIP, SEC_APP, SEC_OPTIONS, SEC_SITE, SEC_THREADS, SEC_LATER };

enum app_key {
    APP_EXE,
    APP_PATH,
    APP_BUILD_ID,
    APP_ARGS,
    APP_CLASS,
    APP_SLOWDOWN,
    APP_WRITES,
    APP_FOOTPRINT
};
#define APP_KEYS "exe|path|build-id|args|class|slowdown|write-intensive|footprint"

/* The first PROFILE_MAX_FRAMES are the frames. */
enum site_key {
    SITE_TIER = PROFILE_MAX_FRAMES,
    SITE_COUNT,
    SITE_BYTES,
    SITE_LIVE_BYTES,
    SITE_MIN_SIZE,
    SITE_MAX_SIZE,
    SITE_READS,
    SITE_WRITES
};
#define SITE_KEYS                                                                                  \
    "frame0|frame1|frame2|frame3|frame4|frame5|frame6|frame7|tier|count|bytes|"                    \
    "live-bytes|min-size|max-size|reads|writes"
#define THREAD_KEYS "dram|pm" /* in the order of enum hy_tier */
#define SECTIONS    "app|options|site|threads|machine"

struct parser {
    struct profile *p;
    const char *name;
    hy_diag_fn diag;
    void *ctx;
    const char *at, *end;
    unsigned line;
    bool key_pending; /* a line went to inih that must come back as a key */
    unsigned problems;
    bool known_section; /* seen; until then nothing has been written to *p */
    enum section section;
    uint64_t seen; /* keys of this section, by their index */
    struct profile_site *site;
    unsigned sites_refused;
    uint16_t bucket[BUCKETS]; /* site index + 1 by hash of its name */
};

/* Enough has been told: only count. Asked before a message is put together, as
 * a hostile file has a million of them. */
static bool hushed(struct parser *ps)
{
    if (ps->problems < PROFILE_MAX_MESSAGES && ps->diag)
        return false;
    ps->problems++;
    return true;
}

static void __attribute__((format(printf, 2, 3))) tell(struct parser *ps, const char *fmt, ...)
{
    char name[TEXT_QUOTE_CAP], what[768], message[1100];
    va_list ap;

    if (hushed(ps))
        return;
    ps->problems++;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    text_quote(ps->name, strlen(ps->name), name, sizeof(name));
    if (ps->line > 0)
        snprintf(message, sizeof(message), "profile %s, line %u: %s", name, ps->line, what);
    else
        snprintf(message, sizeof(message), "profile %s: %s", name, what);
    ps->diag(ps->ctx, message);
}

static void tell_value(struct parser *ps, const char *key, const char *value, const char *expected)
{
    char quoted[TEXT_QUOTE_CAP];

    if (hushed(ps))
        return;
    text_quote(value, strlen(value), quoted, sizeof(quoted));
    if (*value)
        tell(ps, "%s = %s is ignored; expected: %s", key, quoted, expected);
    else
        tell(ps, "%s has no value; expected: %s", key, expected);
}

/* `near`: the word that was probably meant, or empty. */
static void tell_unknown(struct parser *ps, const char *what, const char *name, size_t len,
                         const char *near, size_t near_len)
{
    char quoted[TEXT_QUOTE_CAP];

    text_quote(name, len, quoted, sizeof(quoted));
    if (near_len > 0)
        tell(ps, "unknown %s \"%s\" is ignored; did you mean \"%.*s\"?", what, quoted,
             (int)near_len, near);
    else
        tell(ps, "unknown %s \"%s\" is ignored", what, quoted);
}

static void tell_not_in_list(struct parser *ps, const char *what, const char *name, size_t len,
                             const char *list)
{
    const char *word, *near = "";
    size_t n, near_len = 0;
    unsigned best = ~0u;

    if (hushed(ps))
        return;
    for (int i = 0; (n = text_choice_word(list, i, &word)) > 0; i++) {
        unsigned d = text_distance(name, len, word, n);

        if (d < best && text_is_near(d, HY_MAX(len, n))) {
            best = d;
            near = word;
            near_len = n;
        }
    }
    tell_unknown(ps, what, name, len, near, near_len);
}

/* --- sections ------------------------------------------------------------- */

/* The site of this name, a new one if need be; NULL when there is no room. */
static struct profile_site *site_by_name(struct parser *ps, const char *name, size_t len)
{
    struct profile *p = ps->p;
    uint32_t hash = 2166136261u;
    unsigned b;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    for (b = (hash ^ hash >> 15) % BUCKETS; ps->bucket[b]; b = (b + 1) % BUCKETS) {
        struct profile_site *site = &p->sites[ps->bucket[b] - 1];

        if (strlen(site->name) == len && memcmp(site->name, name, len) == 0) {
            tell(ps, "[site %s] comes again; its keys are merged, the later ones count",
                 site->name);
            return site;
        }
    }
    if (p->n_sites == PROFILE_MAX_SITES) {
        ps->sites_refused++;
        return NULL;
    }
    struct profile_site *site = &p->sites[p->n_sites++];

    memset(site, 0, sizeof(*site));
    memcpy(site->name, name, len);
    ps->bucket[b] = (uint16_t)p->n_sites;
    return site;
}

static void reset(struct profile *p)
{
    struct profile_site *sites = p->sites;

    memset(p, 0, sizeof(*p));
    p->write_intensive = -1;
    p->sites = sites;
}

static bool is_printable_ascii(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (s[i] < 0x20 || s[i] > 0x7e)
            return false;
    return true;
}

static enum section enter_site(struct parser *ps, const char *name, size_t len)
{
    while (len > 0 && (*name == ' ' || *name == '\t')) {
        name++;
        len--;
    }
    while (len > 0 && (name[len - 1] == ' ' || name[len - 1] == '\t'))
        len--;
    if (len == 0 || len >= sizeof(ps->p->sites->name) || !is_printable_ascii(name, len)) {
        tell(ps,
             "a site needs a name of 1 to %zu printable ASCII characters, as in [site a]; the "
             "section is ignored",
             sizeof(ps->p->sites->name) - 1);
        return SEC_SKIP;
    }
    if (!ps->p->sites)
        return SEC_SKIP;
    ps->site = site_by_name(ps, name, len);
    return ps->site ? SEC_SITE : SEC_SKIP;
}

/* A line that starts with '['. len without trailing blanks. */
static enum section enter_section(struct parser *ps, const char *line, size_t len)
{
    static const enum section sections[] = {SEC_APP, SEC_OPTIONS, SEC_SITE, SEC_THREADS, SEC_LATER};
    const char *close = memchr(line, ']', len);
    size_t word = 0;
    int n;

    if (!close) {
        tell(ps, "a section header lacks its ']'; the section is ignored");
        return SEC_SKIP;
    }
    const char *rest = close + 1;
    while (rest < line + len && (*rest == ' ' || *rest == '\t'))
        rest++;
    if (rest < line + len && *rest != ';' && *rest != '#')
        tell(ps, "text behind ']' is ignored");
    line++;
    len = (size_t)(close - line);
    while (word < len && line[word] != ' ' && line[word] != '\t')
        word++;
    n = text_choice(SECTIONS, line, word);
    if (n < 0 || (word < len && sections[n] != SEC_SITE)) {
        tell_not_in_list(ps, "section", line, len, SECTIONS);
        return SEC_SKIP;
    }
    if (!ps->known_section)
        reset(ps->p);
    ps->known_section = true;
    return sections[n] == SEC_SITE ? enter_site(ps, line + word, len - word) : sections[n];
}

/* --- keys ----------------------------------------------------------------- */

static bool set_frame(struct hy_frame *frame, const char *value)
{
    const char *plus = strstr(value, "+0x");
    char hex[2 * BUILD_ID_MAX + 1];
    struct hy_frame f = {0};
    unsigned id_len;

    if (!plus || (size_t)(plus - value) >= sizeof(hex))
        return false;
    memcpy(hex, value, (size_t)(plus - value));
    hex[plus - value] = '\0';
    if (build_id_parse(hex, f.build_id, &id_len) < 0 ||
        text_parse_hex(plus + 3, strlen(plus + 3), &f.offset) < 0)
        return false;
    *frame = f;
    return true;
}

/* Decimal, above 0 and up to 1000: nothing runs a thousand times slower on PM. */
static bool set_slowdown(double *field, const char *value)
{
    double slowdown;

    if (text_parse_decimal(value, strlen(value), &slowdown) < 0)
        return false;
    if (slowdown <= 0 || slowdown > 1000)
        return false;
    *field = slowdown;
    return true;
}

/* cap is at least as large as a line of inih, so it always fits; bounded all the same. */
static bool set_text(char *field, size_t cap, const char *value)
{
    size_t len = strlen(value);

    if (len == 0 || len >= cap || text_has_control(value, len))
        return false;
    memcpy(field, value, len + 1);
    return true;
}

static bool set_class(enum hy_class *field, const char *value)
{
    int n = text_choice(options_info(OPT_CLASS)->allowed, value, strlen(value));

    if (n >= 0)
        *field = (enum hy_class)n; /* "none" is first, as UNKNOWN is */
    return n >= 0;
}

static void app_key(struct parser *ps, int key, const char *name, const char *value)
{
    static const char *const expected[] = {
        "the name of an executable without directories",
        "a pattern such as /opt/*/bin/app",
        "2 to 40 hex digits",
        "a pattern such as *--server*",
        "none, cpu, bandwidth or latency",
        "a decimal number above 0 and up to 1000, such as 1.87",
        "0 or 1",
        "a size such as 512M",
    };
    struct profile *p = ps->p;
    size_t len = strlen(value);
    unsigned id_len;
    bool ok = false;

    switch ((enum app_key)key) {
    case APP_EXE:
        ok = !strchr(value, '/') && set_text(p->exe, sizeof(p->exe), value);
        break;
    case APP_PATH:
        ok = set_text(p->path, sizeof(p->path), value);
        break;
    case APP_BUILD_ID:
        ok = build_id_parse(value, p->build_id, &id_len) == 0;
        p->build_id_len = ok ? (uint8_t)id_len : p->build_id_len;
        break;
    case APP_ARGS:
        ok = set_text(p->args, sizeof(p->args), value);
        break;
    case APP_CLASS:
        ok = set_class(&p->cls, value);
        break;
    case APP_SLOWDOWN:
        ok = set_slowdown(&p->slowdown, value);
        break;
    case APP_WRITES:
        ok = len == 1 && (*value == '0' || *value == '1');
        p->write_intensive = ok ? *value - '0' : p->write_intensive;
        break;
    case APP_FOOTPRINT:
        ok = text_parse_size(value, len, &p->footprint) == 0;
        break;
    }
    if (!ok)
        tell_value(ps, name, value, expected[key]);
}

static void site_key(struct parser *ps, int key, const char *name, const char *value)
{
    struct profile_site *s = ps->site;
    /* In the order of enum site_key, from SITE_COUNT. */
    uint64_t *const numbers[] = {&s->count,    &s->bytes, &s->live_bytes, &s->min_size,
                                 &s->max_size, &s->reads, &s->writes};
    size_t len = strlen(value);

    if (key < PROFILE_MAX_FRAMES) {
        if (set_frame(&s->frames[key], value))
            s->n_frames |= (uint8_t)(1u << key); /* a mask until finish_sites */
        else
            tell_value(ps, name, value, "a build-id and an offset, as in 0123abcd+0x4f0");
    } else if (key == SITE_TIER) {
        int n = text_choice("dram|pm", value, len);

        if (n >= 0) {
            s->has_tier = true;
            s->tier = (enum hy_tier)n;
        } else {
            tell_value(ps, name, value, "dram or pm");
        }
    } else if (key == SITE_COUNT || key >= SITE_READS) {
        if (text_parse_u64(value, len, numbers[key - SITE_COUNT]) < 0)
            tell_value(ps, name, value, "a whole number below 2^64");
    } else if (text_parse_size(value, len, numbers[key - SITE_COUNT]) < 0) {
        tell_value(ps, name, value, "a size of at most 1024T");
    }
}

static void thread_key(struct parser *ps, int key, const char *name, const char *value)
{
    uint64_t n;

    if (text_parse_u64(value, strlen(value), &n) < 0 || n < 1 || n > HY_CPUS)
        tell_value(ps, name, value, "a number of threads from 1 to 1024");
    else
        ps->p->threads[key] = (uint32_t)n;
}

static void option_key(struct parser *ps, enum hy_opt_id id, const char *name, const char *value)
{
    struct profile *p = ps->p;
    unsigned i = 0;

    if (options_info(id)->env_only) {
        tell(ps, "%s cannot be set in a profile and is ignored; set %s instead", name,
             options_info(id)->env);
        return;
    }
    while (i < p->n_options && p->option[i].id != id)
        i++;
    if (!set_text(p->option[i].value, sizeof(p->option[i].value), value)) {
        tell_value(ps, name, value, options_info(id)->allowed);
        return;
    }
    p->option[i].id = id;
    p->n_options = HY_MAX(p->n_options, i + 1);
}

_Static_assert(OPT_COUNT <= 64, "parser.seen has a bit for each");

static void note_duplicate(struct parser *ps, int index, const char *name)
{
    if (ps->seen >> index & 1)
        tell(ps, "%s is given again; the last one counts", name);
    ps->seen |= (uint64_t)1 << index;
}

static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct parser *ps = user;
    size_t len = strlen(name);
    enum hy_opt_id id;
    int key;

    (void)section; /* enter_section knows it better */
    ps->key_pending = false;
    if (ps->section == SEC_OPTIONS) {
        id = options_by_key(name);
        if (id == OPT_COUNT) {
            if (hushed(ps))
                return 1;
            id = options_nearest(name, len);
            const char *near = id == OPT_COUNT ? "" : options_info(id)->key;

            tell_unknown(ps, "option", name, len, near, strlen(near));
            return 1;
        }
        note_duplicate(ps, (int)id, name);
        option_key(ps, id, name, value);
    } else if (ps->section == SEC_APP || ps->section == SEC_SITE || ps->section == SEC_THREADS) {
        const char *keys = ps->section == SEC_APP    ? APP_KEYS
                           : ps->section == SEC_SITE ? SITE_KEYS
                                                     : THREAD_KEYS;

        key = text_choice(keys, name, len);
        if (key < 0) {
            tell_not_in_list(ps, "key", name, len, keys);
            return 1;
        }
        note_duplicate(ps, key, name);
        (ps->section == SEC_APP    ? app_key
         : ps->section == SEC_SITE ? site_key
                                   : thread_key)(ps, key, name, value);
    } else if (ps->section == SEC_NONE) {
        tell(ps, "a key stands before the first section and is ignored");
        ps->section = SEC_SKIP; /* once */
    }
    return 1;
}

/* --- the file ------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* The next line for inih: blanks at both ends and the BOM are gone, headers and
 * lines that are not for it have become empty, so its line count stays ours. */
static char *next_line(char *buf, int cap, void *stream)
{
    struct parser *ps = stream;
    const char *start = ps->at, *stop;
    size_t len;

    if (ps->key_pending)
        tell(ps, "the line is neither a section nor key = value and is ignored");
    ps->key_pending = false;
    if (start == ps->end || cap < 3)
        return NULL;
    stop = memchr(start, '\n', (size_t)(ps->end - start)) ?: ps->end;
    ps->at = stop + (stop < ps->end);
    if (ps->line++ == 0 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
        start += 3;
    while (start < stop && is_blank(*start))
        start++;
    while (stop > start && is_blank(stop[-1]))
        stop--;
    len = (size_t)(stop - start);
    memcpy(buf, "\n", 2);
    if (len == 0 || *start == '#' || *start == ';')
        return buf;
    if (*start == '[') {
        ps->seen = 0;
        ps->section = enter_section(ps, start, len);
    } else if (len + 2 > (size_t)cap) {
        tell(ps, "the line has more than %d bytes and is ignored", cap - 2);
    } else {
        memcpy(buf, start, len);
        memcpy(buf + len, "\n", 2);
        ps->key_pending = true;
    }
    return buf;
}

/* Turn the masks of frames into counts; sites that cannot be found go. */
static void finish_sites(struct parser *ps)
{
    struct profile *p = ps->p;
    unsigned kept = 0;

    ps->line = 0;
    if (ps->sites_refused > 0)
        tell(ps, "%u sites beyond the first %d are ignored", ps->sites_refused, PROFILE_MAX_SITES);
    for (unsigned i = 0; i < p->n_sites; i++) {
        struct profile_site *s = &p->sites[i];
        unsigned mask = s->n_frames;

        if (mask == 0 || (mask & (mask + 1)) != 0) {
            tell(ps, "[site %s] has %s and is ignored", s->name,
                 mask == 0 ? "no frame0" : "a gap in its frames");
            continue;
        }
        s->n_frames = (uint8_t)__builtin_popcount(mask);
        if (s->max_size != 0 && s->min_size > s->max_size)
            tell(ps, "[site %s] has a min-size above its max-size", s->name);
        if (kept != i)
            p->sites[kept] = *s;
        kept++;
    }
    p->n_sites = kept;
}

int profile_parse(const char *text, size_t len, const char *name, struct profile *ret,
                  hy_diag_fn diag, void *ctx)
{
    struct parser ps = {.p = ret, .name = name, .diag = diag, .ctx = ctx, .at = text};

    if (len > PROFILE_MAX_BYTES) {
        tell(&ps, "a file of %zu bytes is no profile (at most %zu)", len, PROFILE_MAX_BYTES);
        return -E2BIG;
    }
    if (len > 0 && memchr(text, '\0', len)) {
        tell(&ps, "the file has NUL bytes and is not taken for a profile");
        return -EINVAL;
    }
    ps.end = text + len;
    (void)ini_parse_stream(next_line, &ps, on_key, &ps);
    if (ps.known_section)
        finish_sites(&ps);
    ps.line = 0;
    if (ps.problems > PROFILE_MAX_MESSAGES) {
        unsigned more = ps.problems - PROFILE_MAX_MESSAGES;

        ps.problems = 0;
        tell(&ps, "%u more problems are not shown", more);
    }
    if (!ps.known_section) {
        ps.problems = 0;
        tell(&ps, "no section of a profile is in the file (%s)",
             "app, options, site, threads or machine");
        return -EINVAL;
    }
    return 0;
}
