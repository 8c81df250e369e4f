/* SPDX-License-Identifier: BSD-2-Clause
 * Machine files are written by programs and mended by hand, so what is wrong is told
 * by line; nothing of a wrong file is used. */
#include "classify/rules/machine_figures.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SOURCES  "default|hmat|measured" /* in the order of enum figures_source */
#define LINE_CAP 120                     /* inih's own buffer has 200 */

/* Words are in place here and below: a pointer costs each start a relocation. */
static const struct {
    char name[16];
    struct machine_figures figures;
} machines[] = {
#define HY_MACHINE(name_, help_, ...) {name_, {.cycle_ns = 0.4, __VA_ARGS__}},
#include "classify/rules/machine_figures.def"
#undef HY_MACHINE
};

/* The numbers of a file. `must`: without it the file says too little. */
struct number {
    char section[16], key[20];
    size_t offset;
    double min, max;
    bool must;
};
#define FIELD(section, key, field, min, max, must)                                                 \
    {                                                                                              \
        section, key, offsetof(struct machine_figures, field), min, max, must                      \
    }
#define MEDIUM(section, t)                                                                         \
    FIELD(section, "read-ns", medium[t].read_ns, 1, 100000, true),                                 \
        FIELD(section, "write-ns", medium[t].write_ns, 1, 100000, true),                           \
        FIELD(section, "seq-read-mbs", medium[t].seq_read_mbs, 1, 10000000, true),                 \
        FIELD(section, "seq-write-mbs", medium[t].seq_write_mbs, 1, 10000000, true),               \
        FIELD(section, "random-read-mbs", medium[t].random_read_mbs, 1, 10000000, false),          \
        FIELD(section, "random-write-mbs", medium[t].random_write_mbs, 1, 10000000, false),        \
        FIELD(section, "read-knee", medium[t].read_knee, 0, 4096, false),                          \
        FIELD(section, "write-knee", medium[t].write_knee, 0, 4096, false),                        \
        FIELD(section, "stream-ns", medium[t].stream_ns, 0, 100000, false)
static const struct number numbers[] = {
    FIELD("machine", "cycle-ns", cycle_ns, 0.01, 100, false),
    FIELD("machine", "dram-mib", of.dram_mib, 0, 1e9, false),
    FIELD("machine", "pm-mib", of.pm_mib, 0, 1e9, false),
    MEDIUM("dram", HY_DRAM),
    MEDIUM("pm", HY_PM),
    FIELD("interference", "dram-read-left", dram_read_left, 0, 100, false),
    FIELD("interference", "dram-write-left", dram_write_left, 0, 100, false),
    FIELD("interference", "pm-left", pm_left, 0, 100, false),
};
_Static_assert(HY_ARRAY_SIZE(numbers) <= 64, "parser.seen has a bit for each");

static const struct {
    char key[16];
    size_t offset;
} texts[] = {
    {"name", offsetof(struct machine_figures, name)},
    {"measured", offsetof(struct machine_figures, measured)},
    {"cpu", offsetof(struct machine_figures, of.cpu)},
    {"pm", offsetof(struct machine_figures, of.pm)},
};
#define CURVE "curve "

size_t figures_count(void)
{
    return HY_ARRAY_SIZE(machines);
}

const char *figures_name(size_t i)
{
    return i < HY_ARRAY_SIZE(machines) ? machines[i].name : NULL;
}

int figures_default(const char *name, struct machine_figures *ret)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(machines); i++)
        if (strcmp(machines[i].name, name) == 0) {
            *ret = machines[i].figures;
            (void)snprintf(ret->name, sizeof(ret->name), "%s", name);
            return 0;
        }
    return -ENOENT;
}

const char *figures_source_name(enum figures_source s)
{
    static const char *const names[] = {"default", "hmat", "measured"};
    return (unsigned)s < HY_ARRAY_SIZE(names) ? names[s] : "default";
}

static double *field_of(struct machine_figures *f, const struct number *n)
{
    return (double *)((char *)f + n->offset);
}

/* --- reading ------------------------------------------------------------------ */

struct parser {
    struct machine_figures f;
    const char *name;
    hy_diag_fn diag;
    void *ctx;
    const char *at, *end;
    unsigned line, problems;
    uint64_t seen; /* numbers, by index */
    bool version, key_pending;
};

static void __attribute__((format(printf, 2, 3))) tell(struct parser *ps, const char *fmt, ...)
{
    va_list ap;

    if (ps->problems++ >= FIGURES_MAX_MESSAGES || !ps->diag)
        return;
    va_start(ap, fmt);
    options_tell_at(ps->diag, ps->ctx, "machine file", ps->name, ps->line, fmt, ap);
    va_end(ap);
}

/* False: it is no text. */
static bool take_text(struct parser *ps, const char *key, const char *value)
{
    size_t len = strlen(value);

    for (size_t i = 0; i < HY_ARRAY_SIZE(texts); i++) {
        if (strcmp(texts[i].key, key) != 0)
            continue;
        if (len >= FIGURES_NAME_CAP || text_has_control(value, len))
            tell(ps, "%s has to be up to %d printable characters", key, FIGURES_NAME_CAP - 1);
        else
            /* All of it, should the key come twice: equal figures are equal bytes. */
            strncpy((char *)&ps->f + texts[i].offset, value, FIGURES_NAME_CAP);
        return true;
    }
    return false;
}

static void check_curve_point(struct parser *ps, const char *key, const char *value)
{
    char quoted[TEXT_QUOTE_CAP];
    uint64_t threads;
    double v;

    if (text_parse_u64(key, strlen(key), &threads) < 0 || threads < 1 || threads > 4096) {
        text_quote(key, strlen(key), quoted, sizeof(quoted));
        tell(ps, "\"%s\" is not a number of threads from 1 to 4096", quoted);
    } else if (text_parse_decimal(value, strlen(value), &v) < 0 || v < 0) {
        text_quote(value, strlen(value), quoted, sizeof(quoted));
        tell(ps, "%s = \"%s\" is not a bandwidth", key, quoted);
    }
}

static void take_number(struct parser *ps, size_t i, const char *value)
{
    const struct number *n = &numbers[i];
    char quoted[TEXT_QUOTE_CAP];
    double v;

    if (text_parse_decimal(value, strlen(value), &v) < 0 || v < n->min || v > n->max) {
        text_quote(value, strlen(value), quoted, sizeof(quoted));
        tell(ps, "%s = \"%s\" is not a number from %g to %g", n->key, quoted, n->min, n->max);
        return;
    }
    if (ps->seen >> i & 1)
        tell(ps, "%s of [%s] is given twice", n->key, n->section);
    ps->seen |= (uint64_t)1 << i;
    *field_of(&ps->f, n) = v;
}

static int on_key(void *user, const char *section, const char *key, const char *value)
{
    struct parser *ps = user;
    char quoted[TEXT_QUOTE_CAP];
    bool machine = strcmp(section, "machine") == 0;

    ps->key_pending = false;
    if (strncmp(section, CURVE, sizeof(CURVE) - 1) == 0) {
        check_curve_point(ps, key, value);
        return 1;
    }
    for (size_t i = 0; i < HY_ARRAY_SIZE(numbers); i++)
        if (strcmp(numbers[i].section, section) == 0 && strcmp(numbers[i].key, key) == 0) {
            take_number(ps, i, value);
            return 1;
        }
    if (machine && strcmp(key, "version") == 0) {
        ps->version = true;
        if (strcmp(value, "1") != 0)
            tell(ps, "it is of another version than %d", FIGURES_VERSION);
    } else if (machine && strcmp(key, "source") == 0) {
        int n = text_choice(SOURCES, value, strlen(value));
        if (n < 0)
            tell(ps, "source has to be measured, hmat or default");
        else
            ps->f.source = (enum figures_source)n;
    } else if (!machine || !take_text(ps, key, value)) {
        text_quote(key, strlen(key), quoted, sizeof(quoted));
        tell(ps, "there is no key \"%s\" in this section", quoted);
    }
    return 1;
}

/* The next line for inih without blanks at its ends, as an indented line would be more
 * text of the key before. inih cuts long lines in two: they never reach it. */
static char *next_line(char *buf, int cap, void *stream)
{
    struct parser *ps = stream;
    const char *start;
    size_t len;

    if (ps->key_pending)
        tell(ps, "the line is neither a section nor key = value");
    ps->key_pending = false;
    if (cap < LINE_CAP || !text_next_line(&ps->at, ps->end, &start, &len))
        return NULL;
    ps->line++;
    memcpy(buf, "\n", 2);
    if (len == 0 || *start == '#' || *start == ';')
        return buf;
    if (len > LINE_CAP - 2) {
        tell(ps, "the line has more than %d bytes", LINE_CAP - 2);
        return buf;
    }
    if (*start == '[' && (len > 32 || start[len - 1] != ']')) {
        tell(ps, "a section header ends in ']'");
        return buf;
    }
    memcpy(buf, start, len);
    memcpy(buf + len, "\n", 2);
    ps->key_pending = *start != '[';
    return buf;
}

static void finish(struct parser *ps)
{
    ps->line = 0;
    if (!ps->version)
        tell(ps, "[machine] has no version: it is no machine file");
    for (size_t i = 0; i < HY_ARRAY_SIZE(numbers); i++)
        if (numbers[i].must && !(ps->seen >> i & 1))
            tell(ps, "[%s] lacks %s", numbers[i].section, numbers[i].key);
    for (int t = 0; t < HY_TIERS; t++) {
        struct medium_figures *m = &ps->f.medium[t];
        if (m->random_read_mbs <= 0)
            m->random_read_mbs = m->seq_read_mbs;
        if (m->random_write_mbs <= 0)
            m->random_write_mbs = m->seq_write_mbs;
    }
}

int figures_parse(const char *text, size_t len, const char *name, struct machine_figures *ret,
                  hy_diag_fn diag, void *ctx)
{
    struct parser ps = {.name = name, .diag = diag, .ctx = ctx, .at = text};

    if (len > FIGURES_MAX_BYTES) {
        tell(&ps, "a file of %zu bytes is no machine file (at most %zu)", len, FIGURES_MAX_BYTES);
        return -E2BIG;
    }
    if (len > 0 && memchr(text, '\0', len)) {
        tell(&ps, "the file has NUL bytes and is not taken for a machine file");
        return -EINVAL;
    }
    ps.end = len > 0 ? text + len : text;
    ps.f.cycle_ns = 0.4;
    ps.f.source = FIGURES_MEASURED;
    ps.f.dram_read_left = ps.f.dram_write_left = ps.f.pm_left = 100;
    (void)ini_parse_stream(next_line, &ps, on_key, &ps);
    finish(&ps);
    if (ps.problems > 0)
        return -EINVAL;
    *ret = ps.f;
    return 0;
}

/* --- what they belong to -------------------------------------------------------- */

static bool differs(double a, double b)
{
    return a > 0 && b > 0 && (a < 0.9 * b || b < 0.9 * a);
}

const char *figures_mismatch(const struct figures_identity *file,
                             const struct figures_identity *here, char *buf, size_t cap,
                             bool *ret_other_pm)
{
    bool other_pm = file->pm[0] && here->pm[0] && strcmp(file->pm, here->pm) != 0;

    if (ret_other_pm)
        *ret_other_pm = other_pm;
    if (other_pm)
        (void)snprintf(buf, cap, "its PM is \"%s\", here it is \"%s\"", file->pm, here->pm);
    else if (file->cpu[0] && here->cpu[0] && strcmp(file->cpu, here->cpu) != 0)
        (void)snprintf(buf, cap, "its processor is %s, here it is %s", file->cpu, here->cpu);
    else if (differs(file->dram_mib, here->dram_mib))
        (void)snprintf(buf, cap, "its DRAM has %.0f MiB, here it is %.0f", file->dram_mib,
                       here->dram_mib);
    else if (differs(file->pm_mib, here->pm_mib))
        (void)snprintf(buf, cap, "its PM has %.0f MiB, here it is %.0f", file->pm_mib,
                       here->pm_mib);
    else
        return NULL;
    return buf;
}

int figures_hmat(const struct hmat_figures hmat[HY_TIERS], const char *technology,
                 struct machine_figures *ret)
{
    struct machine_figures f;
    int r = figures_default(technology, &f);

    if (r < 0)
        return r;
    for (int t = 0; t < HY_TIERS; t++) {
        const struct hmat_figures *h = &hmat[t];
        struct medium_figures *m = &f.medium[t];
        double random_read = m->random_read_mbs / m->seq_read_mbs;
        double random_write = m->random_write_mbs / m->seq_write_mbs;
        if (h->read_ns == 0 || h->read_mbs == 0)
            return -ENODATA;
        m->read_ns = h->read_ns;
        m->write_ns = h->write_ns ? h->write_ns : h->read_ns;
        m->seq_read_mbs = h->read_mbs;
        m->seq_write_mbs = h->write_mbs ? h->write_mbs : h->read_mbs;
        m->random_read_mbs = m->seq_read_mbs * random_read;
        m->random_write_mbs = m->seq_write_mbs * random_write;
    }
    f.source = FIGURES_HMAT;
    *ret = f;
    return 0;
}
