/* SPDX-License-Identifier: BSD-2-Clause
 * The values of a profile's keys. See profile_parser.h. */
#include "settings/rules/profile_parser.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/text.h"

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
    SITE_WRITES,
    SITE_NTH,
    SITE_FROM,
    SITE_UNTIL,
    SITE_READS_IN,
    SITE_WRITES_IN,
    SITE_HEAT
};
#define SITE_KEYS                                                                                  \
    "frame0|frame1|frame2|frame3|frame4|frame5|frame6|frame7|tier|count|bytes|"                    \
    "live-bytes|min-size|max-size|reads|writes|nth|from|until|reads-in|writes-in|heat"
#define THREAD_KEYS "dram|pm|seen" /* the first in the order of enum hy_tier */

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
        ok = profile_set_class(&p->cls, value);
        break;
    case APP_SLOWDOWN:
        ok = profile_set_slowdown(&p->slowdown, value);
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
        profile_tell_value(ps, name, value, expected[key]);
}

static void site_key(struct parser *ps, int key, const char *name, const char *value)
{
    struct profile_site *s = ps->site;
    /* In the order of enum site_key, from SITE_COUNT. */
    uint64_t *const numbers[] = {&s->count,    &s->bytes, &s->live_bytes, &s->min_size,
                                 &s->max_size, &s->reads, &s->writes};
    size_t len = strlen(value);

    if (key < PROFILE_MAX_FRAMES) {
        if (profile_set_frame(&s->frames[key], value))
            s->n_frames |= (uint8_t)(1u << key); /* a mask until finish_sites */
        else
            profile_tell_value(ps, name, value, "a build-id and an offset, as in 0123abcd+0x4f0");
    } else if (key == SITE_TIER) {
        int n = text_choice("dram|pm", value, len);

        if (n >= 0) {
            s->has_tier = true;
            s->tier = (enum hy_tier)n;
        } else {
            profile_tell_value(ps, name, value, "dram or pm");
        }
    } else if (key == SITE_NTH) {
        uint64_t n;

        if (text_parse_u64(value, len, &n) == 0 && n >= 1 && n < 256)
            s->nth = (uint8_t)n;
        else
            profile_tell_value(ps, name, value, "a whole number from 1 to 255");
    } else if (key == SITE_HEAT) {
        if (!profile_heat(value, s))
            profile_tell_value(ps, name, value, "32 whole numbers up to 9999, not all of them 0");
    } else if (key >= SITE_READS_IN) {
        bool reads = key == SITE_READS_IN;
        unsigned n = profile_counts(value, reads ? s->reads_in : s->writes_in, PROFILE_BEHAVIOURS);

        *(reads ? &s->n_reads_in : &s->n_writes_in) = (uint8_t)n;
        if (n == 0)
            profile_tell_value(ps, name, value, "up to 8 whole numbers, such as 1200 0 34");
    } else if (key >= SITE_FROM) {
        double d;

        if (text_parse_decimal(value, len, &d) == 0 && d <= 1)
            *(key == SITE_FROM ? &s->from : &s->until) = d;
        else
            profile_tell_value(ps, name, value, "a decimal number from 0 to 1");
    } else if (key == SITE_COUNT || key >= SITE_READS) {
        if (text_parse_u64(value, len, numbers[key - SITE_COUNT]) < 0)
            profile_tell_value(ps, name, value, "a whole number below 2^64");
    } else if (text_parse_size(value, len, numbers[key - SITE_COUNT]) < 0) {
        profile_tell_value(ps, name, value, "a size of at most 1024T");
    }
}

static void thread_key(struct parser *ps, int key, const char *name, const char *value)
{
    uint64_t n;

    if (text_parse_u64(value, strlen(value), &n) < 0 || n < 1 || n > HY_CPUS)
        profile_tell_value(ps, name, value, "a number of threads from 1 to 1024");
    else
        *(key < HY_TIERS ? &ps->p->threads[key] : &ps->p->threads_seen) = (uint32_t)n;
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

/* --- facts that are only numbers and texts: [app]'s work, [machine], [recorded] ---- */

enum fact_type { FACT_TEXT, FACT_SIZE, FACT_COUNT, FACT_COUNT32, FACT_SHARE, FACT_DECIMAL };

struct fact {
    enum fact_type type;
    size_t offset; /* in struct profile */
};

#define FACT(type, field)                                                                          \
    {                                                                                              \
        type, offsetof(struct profile, field)                                                      \
    }
/* In the order of the lists of keys. */
#define WORK_KEYS "exposure|foreseen|busy-threads"
static const struct fact work_facts[] = {FACT(FACT_SHARE, exposure), FACT(FACT_SHARE, foreseen),
                                         FACT(FACT_DECIMAL, busy_threads)};
#define MACHINE_KEYS "figures|dram|pm|cpus"
static const struct fact machine_facts[] = {
    FACT(FACT_TEXT, source.figures), FACT(FACT_SIZE, source.dram_bytes),
    FACT(FACT_SIZE, source.pm_bytes), FACT(FACT_COUNT32, source.cpus)};
#define RECORDED_KEYS                                                                              \
    "libhybrid|method|runs|windows|milliseconds|confidence|reads|writes|samples|period|known|"     \
    "mapped|accesses"
static const struct fact recorded_facts[] = {
    FACT(FACT_TEXT, source.libhybrid), FACT(FACT_TEXT, source.method),
    FACT(FACT_COUNT32, source.runs),   FACT(FACT_COUNT, source.windows),
    FACT(FACT_COUNT, source.ms),       FACT(FACT_SHARE, source.confidence),
    FACT(FACT_COUNT, source.reads),    FACT(FACT_COUNT, source.writes),
    FACT(FACT_COUNT, source.samples),  FACT(FACT_COUNT, source.period),
    FACT(FACT_DECIMAL, source.known),  FACT(FACT_DECIMAL, source.mapped),
    FACT(FACT_TEXT, source.accesses)};

#define MOST_DECIMAL 1e6

static void fact_key(struct parser *ps, const struct fact *f, const char *name, const char *value)
{
    static const char *const expected[] = {
        "up to 95 bytes of text",       "a size such as 512M",
        "a whole number below 2^64",    "a whole number below 2^32",
        "a decimal number from 0 to 1", "a decimal number from 0 to 1000000"};
    char *to = (char *)ps->p + f->offset;
    size_t len = strlen(value);
    uint64_t n = 0;
    double d = 0;
    bool ok = false;

    switch (f->type) {
    case FACT_TEXT:
        ok = set_text(to, PROFILE_TEXT_CAP, value);
        break;
    case FACT_SIZE:
        ok = text_parse_size(value, len, &n) == 0;
        break;
    case FACT_COUNT:
        ok = text_parse_u64(value, len, &n) == 0;
        break;
    case FACT_COUNT32:
        ok = text_parse_u64(value, len, &n) == 0 && n <= UINT32_MAX;
        break;
    case FACT_SHARE:
    case FACT_DECIMAL:
        ok = text_parse_decimal(value, len, &d) == 0 &&
             d <= (f->type == FACT_SHARE ? 1 : MOST_DECIMAL);
        break;
    }
    if (!ok)
        profile_tell_value(ps, name, value, expected[f->type]);
    else if (f->type == FACT_SIZE || f->type == FACT_COUNT)
        *(uint64_t *)(void *)to = n;
    else if (f->type == FACT_COUNT32)
        *(uint32_t *)(void *)to = (uint32_t)n;
    else if (f->type != FACT_TEXT)
        *(double *)(void *)to = d;
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

static void listed_key(struct parser *ps, const char *keys, const char *name, const char *value,
                       void (*take)(struct parser *ps, int key, const char *name,
                                    const char *value))
{
    int key = text_choice(keys, name, strlen(name));

    if (key < 0) {
        profile_tell_not_in_list(ps, "key", name, strlen(name), keys);
        return;
    }
    note_duplicate(ps, key, name);
    take(ps, key, name, value);
}

static void any_app_key(struct parser *ps, int key, const char *name, const char *value)
{
    if (key <= APP_FOOTPRINT)
        app_key(ps, key, name, value);
    else
        fact_key(ps, &work_facts[key - APP_FOOTPRINT - 1], name, value);
}

/* Of [machine] or [recorded]. */
static void source_key(struct parser *ps, int key, const char *name, const char *value)
{
    fact_key(ps, &(ps->section == SEC_MACHINE ? machine_facts : recorded_facts)[key], name, value);
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
        listed_key(ps, APP_KEYS "|" WORK_KEYS, name, value, any_app_key);
        break;
    case SEC_OPTIONS:
        any_option_key(ps, name, value);
        break;
    case SEC_SITE:
        listed_key(ps, SITE_KEYS, name, value, site_key);
        break;
    case SEC_THREADS:
        listed_key(ps, THREAD_KEYS, name, value, thread_key);
        break;
    case SEC_MACHINE:
        listed_key(ps, MACHINE_KEYS, name, value, source_key);
        break;
    case SEC_RECORDED:
        listed_key(ps, RECORDED_KEYS, name, value, source_key);
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
