/* SPDX-License-Identifier: BSD-2-Clause
 * inih takes lines apart; the reader that feeds it looks at each line first,
 * because inih itself cuts long lines and section names in two without a word,
 * says nothing of empty sections, gives the keys behind a broken header to the
 * section before, and takes an indented key for more text of the last one. */
#include "settings/rules/profile_parser.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

#include "base/text.h"

#define SECTIONS "app|options|site|threads|machine|recorded|phases|modules|tasks|behaviours"

bool profile_hushed(struct parser *ps)
{
    if (ps->problems < PROFILE_MAX_MESSAGES && ps->diag)
        return false;
    ps->problems++;
    return true;
}

void profile_tell(struct parser *ps, const char *fmt, ...)
{
    va_list ap;

    if (profile_hushed(ps))
        return;
    ps->problems++;
    va_start(ap, fmt);
    options_tell_at(ps->diag, ps->ctx, "profile", ps->name, ps->line, fmt, ap);
    va_end(ap);
}

void profile_tell_value(struct parser *ps, const char *key, const char *value, const char *expected)
{
    char quoted[TEXT_QUOTE_CAP];

    if (profile_hushed(ps))
        return;
    text_quote(value, strlen(value), quoted, sizeof(quoted));
    if (*value)
        profile_tell(ps, "%s = %s is ignored; expected: %s", key, quoted, expected);
    else
        profile_tell(ps, "%s has no value; expected: %s", key, expected);
}

void profile_tell_unknown(struct parser *ps, const char *what, const char *name, size_t len,
                          const char *near, size_t near_len)
{
    char quoted[TEXT_QUOTE_CAP];

    text_quote(name, len, quoted, sizeof(quoted));
    if (near_len > 0)
        profile_tell(ps, "unknown %s \"%s\" is ignored; did you mean \"%.*s\"?", what, quoted,
                     (int)near_len, near);
    else
        profile_tell(ps, "unknown %s \"%s\" is ignored", what, quoted);
}

void profile_tell_not_in_list(struct parser *ps, const char *what, const char *name, size_t len,
                              const char *list)
{
    const char *word, *near = "";
    size_t n, near_len = 0;
    unsigned best = ~0u;

    if (profile_hushed(ps))
        return;
    for (int i = 0; (n = text_choice_word(list, i, &word)) > 0; i++) {
        unsigned d = text_distance(name, len, word, n);

        if (d < best && text_is_near(d, HY_MAX(len, n))) {
            best = d;
            near = word;
            near_len = n;
        }
    }
    profile_tell_unknown(ps, what, name, len, near, near_len);
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
    for (b = (hash ^ hash >> 15) % PROFILE_BUCKETS; ps->bucket[b]; b = (b + 1) % PROFILE_BUCKETS) {
        struct profile_site *site = &p->sites[ps->bucket[b] - 1];

        if (strlen(site->name) == len && memcmp(site->name, name, len) == 0) {
            profile_tell(ps, "[site %s] comes again; its keys are merged, the later ones count",
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
    p->exposure = p->foreseen = -1;
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
    text_trim(&name, &len);
    if (len == 0 || len >= sizeof(ps->p->sites->name) || !is_printable_ascii(name, len)) {
        profile_tell(
            ps,
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
    static const enum section sections[] = {SEC_APP,     SEC_OPTIONS,   SEC_SITE,   SEC_THREADS,
                                            SEC_MACHINE, SEC_RECORDED,  SEC_PHASES, SEC_MODULES,
                                            SEC_TASKS,   SEC_BEHAVIOURS};
    const char *close = memchr(line, ']', len);
    size_t word = 0;
    int n;

    if (!close) {
        profile_tell(ps, "a section header lacks its ']'; the section is ignored");
        return SEC_SKIP;
    }
    const char *rest = close + 1;
    while (rest < line + len && (*rest == ' ' || *rest == '\t'))
        rest++;
    if (rest < line + len && *rest != ';' && *rest != '#')
        profile_tell(ps, "text behind ']' is ignored");
    line++;
    len = (size_t)(close - line);
    while (word < len && line[word] != ' ' && line[word] != '\t')
        word++;
    n = text_choice(SECTIONS, line, word);
    if (n < 0 || (word < len && sections[n] != SEC_SITE)) {
        profile_tell_not_in_list(ps, "section", line, len, SECTIONS);
        return SEC_SKIP;
    }
    if (!ps->known_section)
        reset(ps->p);
    ps->known_section = true;
    return sections[n] == SEC_SITE ? enter_site(ps, line + word, len - word) : sections[n];
}

static int on_key(void *user, const char *section, const char *name, const char *value)
{
    struct parser *ps = user;

    (void)section; /* enter_section knows it better */
    ps->key_pending = false;
    profile_key(ps, name, value);
    return 1;
}

/* --- the file ------------------------------------------------------------- */

/* The next line for inih: blanks at both ends and the BOM are gone, headers and
 * lines that are not for it have become empty, so its line count stays ours. */
static char *next_line(char *buf, int cap, void *stream)
{
    struct parser *ps = stream;
    const char *start;
    size_t len;

    if (ps->key_pending)
        profile_tell(ps, "the line is neither a section nor key = value and is ignored");
    ps->key_pending = false;
    if (ps->line == 0 && ps->end - ps->at >= 3 && memcmp(ps->at, "\xef\xbb\xbf", 3) == 0)
        ps->at += 3;
    if (cap < 3 || !text_next_line(&ps->at, ps->end, &start, &len))
        return NULL;
    ps->line++;
    memcpy(buf, "\n", 2);
    if (len == 0 || *start == '#' || *start == ';')
        return buf;
    if (*start == '[') {
        ps->seen = 0;
        ps->section = enter_section(ps, start, len);
    } else if (len + 2 > (size_t)cap) {
        profile_tell(ps, "the line has more than %d bytes and is ignored", cap - 2);
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
        profile_tell(ps, "%u sites beyond the first %d are ignored", ps->sites_refused,
                     PROFILE_MAX_SITES);
    for (unsigned i = 0; i < p->n_sites; i++) {
        struct profile_site *s = &p->sites[i];
        unsigned mask = s->n_frames;

        if (mask == 0 || (mask & (mask + 1)) != 0) {
            profile_tell(ps, "[site %s] has %s and is ignored", s->name,
                         mask == 0 ? "no frame0" : "a gap in its frames");
            continue;
        }
        s->n_frames = (uint8_t)__builtin_popcount(mask);
        if (s->max_size != 0 && s->min_size > s->max_size)
            profile_tell(ps, "[site %s] has a min-size above its max-size", s->name);
        if (kept != i)
            p->sites[kept] = *s;
        kept++;
    }
    p->n_sites = kept;
    profile_check_behaviours(ps);
}

int profile_parse(const char *text, size_t len, const char *name, struct profile *ret,
                  hy_diag_fn diag, void *ctx)
{
    struct parser ps = {.p = ret, .name = name, .diag = diag, .ctx = ctx, .at = text};

    if (len > PROFILE_MAX_BYTES) {
        profile_tell(&ps, "a file of %zu bytes is no profile (at most %zu)", len,
                     PROFILE_MAX_BYTES);
        return -E2BIG;
    }
    if (len > 0 && memchr(text, '\0', len)) {
        profile_tell(&ps, "the file has NUL bytes and is not taken for a profile");
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
        profile_tell(&ps, "%u more problems are not shown", more);
    }
    if (!ps.known_section) {
        ps.problems = 0;
        profile_tell(
            &ps, "no section of a profile is in the file (%s)",
            "app, options, site, threads, machine, recorded, phases, modules, tasks or behaviours");
        return -EINVAL;
    }
    return 0;
}
