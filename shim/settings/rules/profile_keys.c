/* SPDX-License-Identifier: BSD-2-Clause
 * The values of a profile's keys. See profile_parser.h. */
#include "settings/rules/profile_parser.h"

#include <stddef.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/text.h"

/* --- keys with one value ----------------------------------------------------------- */

enum fact_type {
    NAME,
    PATH,
    ARGS,
    TEXT,
    BUILD_ID,
    CLASS,
    SLOWDOWN,
    SHARE,
    DECIMAL,
    FLAG,
    NTH,
    THREADS,
    COUNT32,
    COUNT,
    SIZE
};

static const struct {
    uint64_t least, most; /* of numbers */
    const char *expected;
} types[] = {
    [NAME] = {0, 0, "the name of an executable without directories"},
    [PATH] = {0, 0, "a pattern such as /opt/*/bin/app"},
    [ARGS] = {0, 0, "a pattern such as *--server*"},
    [TEXT] = {0, 0, "up to 95 bytes of text"},
    [BUILD_ID] = {0, 0, "2 to 40 hex digits"},
    [CLASS] = {0, 0, "none, cpu, bandwidth or latency"},
    [SLOWDOWN] = {0, 0, "a decimal number above 0 and up to 1000, such as 1.87"},
    [SHARE] = {0, 1, "a decimal number from 0 to 1"},
    [DECIMAL] = {0, 1000000, "a decimal number from 0 to 1000000"},
    [FLAG] = {0, 1, "0 or 1"},
    [NTH] = {1, 255, "a whole number from 1 to 255"},
    [THREADS] = {1, HY_CPUS, "a number of threads from 1 to 1024"},
    [COUNT32] = {0, UINT32_MAX, "a whole number below 2^32"},
    [COUNT] = {0, UINT64_MAX, "a whole number below 2^64"},
    [SIZE] = {0, UINT64_MAX, "a size of at most 1024T, such as 512M"},
};

struct fact {
    enum fact_type type;
    size_t offset, bytes; /* of the field, in struct profile or struct profile_site */
};
#define FIELD(type, owner, field)                                                                  \
    {                                                                                              \
        type, offsetof(struct owner, field), sizeof(((struct owner *)0)->field)                    \
    }
#define FACT(type, field) FIELD(type, profile, field)
#define SITE(type, field) FIELD(type, profile_site, field)
/* In the order of the lists of keys. */
#define APP_KEYS                                                                                   \
    "exe|path|build-id|args|class|slowdown|write-intensive|footprint|exposure|foreseen|busy-"      \
    "threads"
static const struct fact app_facts[] = {FACT(NAME, exe),
                                        FACT(PATH, path),
                                        FACT(BUILD_ID, build_id),
                                        FACT(ARGS, args),
                                        FACT(CLASS, cls),
                                        FACT(SLOWDOWN, slowdown),
                                        FACT(FLAG, write_intensive),
                                        FACT(SIZE, footprint),
                                        FACT(SHARE, exposure),
                                        FACT(SHARE, foreseen),
                                        FACT(DECIMAL, busy_threads)};
#define THREAD_KEYS "dram|pm|seen"
static const struct fact thread_facts[] = {
    FACT(THREADS, threads[HY_DRAM]), FACT(THREADS, threads[HY_PM]), FACT(THREADS, threads_seen)};
#define MACHINE_KEYS "figures|dram|pm|cpus"
static const struct fact machine_facts[] = {
    FACT(TEXT, source.figures), FACT(SIZE, source.dram_bytes), FACT(SIZE, source.pm_bytes),
    FACT(COUNT32, source.cpus)};
#define RECORDED_KEYS                                                                              \
    "libhybrid|method|runs|windows|milliseconds|confidence|reads|writes|samples|period|known|"     \
    "mapped|accesses"
static const struct fact recorded_facts[] = {
    FACT(TEXT, source.libhybrid), FACT(TEXT, source.method),   FACT(COUNT32, source.runs),
    FACT(COUNT, source.windows),  FACT(COUNT, source.ms),      FACT(SHARE, source.confidence),
    FACT(COUNT, source.reads),    FACT(COUNT, source.writes),  FACT(COUNT, source.samples),
    FACT(COUNT, source.period),   FACT(DECIMAL, source.known), FACT(DECIMAL, source.mapped),
    FACT(TEXT, source.accesses)};
/* Of a site: its frames, keys that set more than their own field, and facts. */
enum { SITE_TIER = PROFILE_MAX_FRAMES, SITE_READS_IN, SITE_WRITES_IN, SITE_HEAT, SITE_FACTS };
#define SITE_KEYS                                                                                  \
    "frame0|frame1|frame2|frame3|frame4|frame5|frame6|frame7|tier|reads-in|writes-in|heat|count|"  \
    "bytes|live-bytes|min-size|max-size|reads|writes|nth|from|until"
static const struct fact site_facts[] = {
    SITE(COUNT, count),   SITE(SIZE, bytes),  SITE(SIZE, live_bytes), SITE(SIZE, min_size),
    SITE(SIZE, max_size), SITE(COUNT, reads), SITE(COUNT, writes),    SITE(NTH, nth),
    SITE(SHARE, from),    SITE(SHARE, until)};

bool profile_set_frame(struct hy_frame *frame, const char *value)
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
bool profile_set_slowdown(double *field, const char *value)
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

bool profile_set_class(enum hy_class *field, const char *value)
{
    int n = text_choice(options_info(OPT_CLASS)->allowed, value, strlen(value));

    if (n >= 0)
        *field = (enum hy_class)n; /* "none" is first, as UNKNOWN is */
    return n >= 0;
}

static bool set_build_id(struct profile *p, const char *value)
{
    unsigned len;
    bool ok = build_id_parse(value, p->build_id, &len) == 0;

    p->build_id_len = ok ? (uint8_t)len : p->build_id_len;
    return ok;
}

static bool set_number(const struct fact *f, void *to, const char *value)
{
    uint64_t n;
    int r = f->type == SIZE ? text_parse_size(value, strlen(value), &n)
                            : text_parse_u64(value, strlen(value), &n);

    if (r < 0 || n < types[f->type].least || n > types[f->type].most)
        return false;
    if (f->bytes == sizeof(uint64_t))
        *(uint64_t *)to = n;
    else if (f->bytes == sizeof(uint32_t))
        *(uint32_t *)to = (uint32_t)n;
    else
        *(uint8_t *)to = (uint8_t)n;
    return true;
}

/* NULL, or what was expected. */
static const char *set_fact(const struct fact *f, void *in, const char *value)
{
    void *to = (char *)in + f->offset;
    double d;
    bool ok;

    switch (f->type) {
    case NAME:
    case PATH:
    case ARGS:
    case TEXT:
        ok = (f->type != NAME || !strchr(value, '/')) && set_text(to, f->bytes, value);
        break;
    case BUILD_ID:
        ok = set_build_id(in, value);
        break;
    case CLASS:
        ok = profile_set_class(to, value);
        break;
    case SLOWDOWN:
        ok = profile_set_slowdown(to, value);
        break;
    case SHARE:
    case DECIMAL:
        ok = text_parse_decimal(value, strlen(value), &d) == 0 && d <= (double)types[f->type].most;
        if (ok)
            *(double *)to = d;
        break;
    default:
        ok = set_number(f, to, value);
    }
    return ok ? NULL : types[f->type].expected;
}

static const char *set_site(struct profile_site *s, int key, const char *value)
{
    unsigned n;
    int tier;

    switch (key) {
    case SITE_TIER:
        tier = text_choice("dram|pm", value, strlen(value));
        s->has_tier |= tier >= 0;
        s->tier = tier >= 0 ? (enum hy_tier)tier : s->tier;
        return tier >= 0 ? NULL : "dram or pm";
    case SITE_READS_IN:
        s->n_reads_in = (uint8_t)(n = profile_counts(value, s->reads_in, PROFILE_BEHAVIOURS));
        return n ? NULL : "up to 8 whole numbers, such as 1200 0 34";
    case SITE_WRITES_IN:
        s->n_writes_in = (uint8_t)(n = profile_counts(value, s->writes_in, PROFILE_BEHAVIOURS));
        return n ? NULL : "up to 8 whole numbers, such as 1200 0 34";
    case SITE_HEAT:
        return profile_heat(value, s) ? NULL : "32 whole numbers up to 9999, not all of them 0";
    default:
        if (key >= SITE_FACTS)
            return set_fact(&site_facts[key - SITE_FACTS], s, value);
        if (!profile_set_frame(&s->frames[key], value))
            return "a build-id and an offset, as in 0123abcd+0x4f0";
        s->n_frames |= (uint8_t)(1u << key); /* a mask until finish_sites */
        return NULL;
    }
}

static void option_key(struct parser *ps, enum hy_opt_id id, const char *name, const char *value)
{
    struct profile *p = ps->p;
    unsigned i = 0;

    if (options_info(id)->env_only) {
        profile_tell(ps, "%s cannot be set in a profile and is ignored; set %s instead", name,
                     options_info(id)->env);
        return;
    }
    while (i < p->n_options && p->option[i].id != id)
        i++;
    if (!set_text(p->option[i].value, sizeof(p->option[i].value), value)) {
        profile_tell_value(ps, name, value, options_info(id)->allowed);
        return;
    }
    p->option[i].id = id;
    p->n_options = HY_MAX(p->n_options, i + 1);
}

_Static_assert(OPT_COUNT <= 64, "parser.seen has a bit for each");

static void note_duplicate(struct parser *ps, int index, const char *name)
{
    if (ps->seen >> index & 1)
        profile_tell(ps, "%s is given again; the last one counts", name);
    ps->seen |= (uint64_t)1 << index;
}

static void module_key(struct parser *ps, const char *name, const char *value)
{
    uint8_t id[BUILD_ID_MAX];
    char path[PROFILE_PATH_CAP];
    unsigned len;

    if (build_id_parse(name, id, &len) < 0)
        profile_tell_value(ps, "a key of [modules]", name, "a build-id of 2 to 40 hex digits");
    else if (!set_text(path, sizeof(path), value))
        profile_tell_value(ps, name, value, "the path of a module");
}

/* --- keys of a section ---------------------------------------------------------- */

/* Which of these keys; -1, which is told: none. */
static int listed(struct parser *ps, const char *keys, const char *name)
{
    int key = text_choice(keys, name, strlen(name));

    if (key < 0)
        profile_tell_not_in_list(ps, "key", name, strlen(name), keys);
    else
        note_duplicate(ps, key, name);
    return key;
}

static void fact_key(struct parser *ps, const char *keys, const struct fact *facts,
                     const char *name, const char *value)
{
    int key = listed(ps, keys, name);
    const char *expected = key >= 0 ? set_fact(&facts[key], ps->p, value) : NULL;

    if (expected)
        profile_tell_value(ps, name, value, expected);
}

static void site_key(struct parser *ps, const char *name, const char *value)
{
    int key = listed(ps, SITE_KEYS, name);
    const char *expected = key >= 0 ? set_site(ps->site, key, value) : NULL;

    if (expected)
        profile_tell_value(ps, name, value, expected);
}

static void any_option_key(struct parser *ps, const char *name, const char *value)
{
    enum hy_opt_id id = options_by_key(name);

    if (id != OPT_COUNT) {
        note_duplicate(ps, (int)id, name);
        option_key(ps, id, name, value);
    } else if (!profile_hushed(ps)) {
        id = options_nearest(name, strlen(name));
        const char *near = id == OPT_COUNT ? "" : options_info(id)->key;

        profile_tell_unknown(ps, "option", name, strlen(name), near, strlen(near));
    }
}

void profile_key(struct parser *ps, const char *name, const char *value)
{
    switch (ps->section) {
    case SEC_NONE:
        profile_tell(ps, "a key stands before the first section and is ignored");
        ps->section = SEC_SKIP; /* once */
        break;
    case SEC_SKIP:
        break;
    case SEC_APP:
        fact_key(ps, APP_KEYS, app_facts, name, value);
        break;
    case SEC_OPTIONS:
        any_option_key(ps, name, value);
        break;
    case SEC_SITE:
        site_key(ps, name, value);
        break;
    case SEC_THREADS:
        fact_key(ps, THREAD_KEYS, thread_facts, name, value);
        break;
    case SEC_MACHINE:
        fact_key(ps, MACHINE_KEYS, machine_facts, name, value);
        break;
    case SEC_RECORDED:
        fact_key(ps, RECORDED_KEYS, recorded_facts, name, value);
        break;
    case SEC_MODULES:
        module_key(ps, name, value);
        break;
    case SEC_PHASES:
    case SEC_BEHAVIOURS:
    case SEC_TASKS:
        profile_numbered_key(ps, name, value);
        break;
    }
}
