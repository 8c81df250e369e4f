/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ctl/top.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

const char top_keys[] = "dram|pm|moves|written|threads|slowdown|pid|name";
const char top_letters[] = "dpmwtsin";

#define WIDE 100u /* from here on columns that 80 have no room for */
#define LINE 512u

/* --- looking ---------------------------------------------------------------- */

static uint64_t rate(uint64_t from, uint64_t to, uint64_t ns)
{
    return to > from ? (uint64_t)((double)(to - from) * 1e9 / (double)ns) : 0;
}

static void set_rates(struct top_row *now, const struct top_row *before, unsigned n_before)
{
    const struct registry_entry *e = &now->entry;

    for (unsigned i = 0; i < n_before; i++) {
        const struct registry_entry *b = &before[i].entry;
        if (b->pid != e->pid)
            continue;
        if (b->heartbeat_ns >= e->heartbeat_ns) { /* nothing new was told */
            now->up_rate = before[i].up_rate;
            now->down_rate = before[i].down_rate;
            return;
        }
        uint64_t ns = e->heartbeat_ns - b->heartbeat_ns;
        now->up_rate = rate(b->published.promoted_bytes, e->published.promoted_bytes, ns);
        now->down_rate = rate(b->published.demoted_bytes, e->published.demoted_bytes, ns);
        return;
    }
}

int top_look(struct top_screen *s)
{
    static struct top_row before[REGISTRY_SLOTS];
    unsigned n_before = s->view.n;
    int error;

    memcpy(before, s->row, sizeof(before[0]) * n_before);
    error = ctl_registry_look(s->path, &s->view);
    s->exists = error == 0;
    for (unsigned i = 0; i < s->view.n; i++) {
        s->row[i] = (struct top_row){.entry = s->view.entry[i]};
        set_rates(&s->row[i], before, n_before);
    }
    return error == -ENOENT ? 0 : error;
}

static const struct top_screen *sorted; /* qsort has no context */

static uint64_t weight(const struct top_row *r, enum top_key key)
{
    const struct registry_published *t = &r->entry.published;

    switch (key) {
    case TOP_DRAM:
        return r->entry.dram_bytes;
    case TOP_PM:
        return t->pm_bytes;
    case TOP_MOVES:
        return r->up_rate + r->down_rate;
    case TOP_WRITTEN:
        return t->written_bytes;
    case TOP_THREADS:
        return t->threads;
    case TOP_SLOWDOWN:
        return t->slowdown;
    default:
        return UINT64_MAX - (uint64_t)r->entry.pid; /* lowest first */
    }
}

static int compare(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    uint64_t v = weight(x, sorted->key), w = weight(y, sorted->key);
    int order = v < w ? 1 : v > w ? -1 : 0;

    if (sorted->key == TOP_NAME)
        order = strncmp(x->entry.name, y->entry.name, sizeof(x->entry.name));
    if (sorted->reverse)
        order = -order;
    return order ? order : x->entry.pid - y->entry.pid;
}

void top_sort(struct top_screen *s)
{
    sorted = s;
    qsort(s->row, s->view.n, sizeof(s->row[0]), compare);
}

/* --- lines ------------------------------------------------------------------- */

struct screen_line {
    char text[LINE];
    size_t len;
};

static void put(struct screen_line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct screen_line *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, fmt, ap);
    va_end(ap);
    if (n > 0)
        l->len = HY_MIN(l->len + (size_t)n, sizeof(l->text) - 1);
}

static const char *ratio(uint32_t milli, char buf[16])
{
    if (milli == 0)
        snprintf(buf, 16, "-");
    else
        snprintf(buf, 16,
                 milli >= 99950  ? "%.0f"
                 : milli >= 9995 ? "%.1f"
                                 : "%.2f",
                 milli / 1000.0);
    return buf;
}

static const char *short_age(double s, char buf[16])
{
    snprintf(buf, 16,
             s < 99.5   ? "%.0fs"
             : s < 5970 ? "%.0fm"
                        : "%.0fh",
             s < 99.5   ? s
             : s < 5970 ? s / 60
                        : HY_MIN(s / 3600, 999));
    return buf;
}

static void put_bar(struct screen_line *l, unsigned cells, uint64_t part, uint64_t whole)
{
    unsigned full = whole ? (unsigned)(HY_MIN((double)part / (double)whole, 1.0) * cells + 0.5) : 0;

    if (full == 0 && part > 0 && cells > 0)
        full = 1; /* a little is not nothing */
    put(l, "[");
    for (unsigned i = 0; i < cells; i++)
        put(l, "%c", i < full ? '|' : ' ');
    put(l, "]");
}

struct paper {
    FILE *to;
    unsigned width, left; /* lines */
    bool begun;
    bool colour, live;
};

/* One line, cut to the width. `sgr`: how, if in colour. All text is ASCII here. */
static void flush_line(struct paper *p, const struct screen_line *l, const char *sgr)
{
    if (p->left == 0)
        return;
    p->left--;
    /* Before a line: a newline behind the last one of a screen would scroll it. */
    if (p->live && p->begun)
        fputc('\n', p->to);
    p->begun = true;
    if (p->colour && sgr)
        fprintf(p->to, "\033[%sm", sgr);
    fprintf(p->to, "%.*s", (int)HY_MIN(l->len, (size_t)p->width), l->text);
    if (p->colour && sgr)
        fputs("\033[0m", p->to);
    fputs(p->live ? "\033[K" : "\n", p->to);
}

static void print_head(const struct top_screen *s, struct paper *p)
{
    struct ctl_totals t = ctl_registry_totals(&s->view);
    struct screen_line l = {.len = 0};
    char clock[16] = "", a[32], b[32];
    time_t now = time(NULL);
    struct tm tm;
    unsigned cells = p->width > 60 ? HY_MIN(p->width - 50, 60u) : 10;

    if (localtime_r(&now, &tm))
        (void)strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    put(&l, "hybridctl top  %s  %u program%s  %s", clock, s->view.n, s->view.n == 1 ? "" : "s",
        s->path);
    flush_line(p, &l, "1");
    l.len = 0;
    put(&l, "DRAM ");
    put_bar(&l, cells, t.dram, s->view.dram_budget);
    put(&l, " %s of %s for all", ctl_size(t.dram, a, sizeof(a)),
        ctl_size(s->view.dram_budget, b, sizeof(b)));
    flush_line(p, &l, "34");
    l.len = 0;
    put(&l, "PM   ");
    put_bar(&l, cells, t.pm, t.pm + t.dram);
    put(&l, " %s, %.0f %% of all data", ctl_size(t.pm, a, sizeof(a)),
        t.pm ? 100.0 * (double)t.pm / (double)(t.pm + t.dram) : 0.0);
    flush_line(p, &l, "33");
    l.len = 0;
    flush_line(p, &l, NULL);
}

/* Columns that names get: what the others leave. */
static unsigned name_columns(const struct paper *p)
{
    unsigned others = p->width >= WIDE ? 67 + 27 : 67;
    return p->width >= others + 8 ? HY_MIN(p->width - others, 15u) : 8;
}

static void print_titles(struct paper *p)
{
    struct screen_line l = {.len = 0};
    unsigned n = name_columns(p);

    put(&l, "%7s %-*s %-5s %4s %5s %5s ", "PID", (int)n, "NAME", "CLASS", "SURE", "DRAM", "PM");
    if (p->width >= WIDE)
        put(&l, "%-10s %5s %5s ", "ON DRAM", "UP/s", "DN/s");
    else
        put(&l, "%5s ", "MOV/s");
    put(&l, "%5s %5s %6s %4s ", "WRIT", "THR", "WISH", "SLOW");
    if (p->width >= WIDE)
        put(&l, "%4s ", "NOW");
    put(&l, "%4s", "AGE");
    flush_line(p, &l, "7");
}

static void print_row(const struct top_row *r, struct paper *p)
{
    static const char *const classes[HY_CLASS_MAX] = {"-", "cpu", "bandw", "laten"};
    const struct registry_entry *e = &r->entry;
    const struct registry_published *t = &e->published;
    struct screen_line l = {.len = 0};
    char name[TEXT_QUOTE_CAP], a[16], b[16], sure[16] = "-", threads[32];
    int n = (int)name_columns(p);

    if (t->confidence)
        snprintf(sure, sizeof(sure), "%u%%", t->confidence / 10);
    if (t->arrived_ns)
        snprintf(sure, sizeof(sure), "wait");
    snprintf(threads, sizeof(threads), t->cap ? "%u/%u" : "%u", t->threads, t->cap);
    put(&l, "%7d %-*.*s %-5s %4s %5s %5s ", e->pid, n, n, ctl_registry_name(e, name, sizeof(name)),
        classes[t->cls], sure, ctl_short_size(e->dram_bytes, a), ctl_short_size(t->pm_bytes, b));
    if (p->width >= WIDE) {
        put_bar(&l, 8, e->dram_bytes, e->dram_bytes + t->pm_bytes);
        put(&l, " %5s %5s ", ctl_short_size(r->up_rate, a), ctl_short_size(r->down_rate, b));
    } else {
        put(&l, "%5s ", ctl_short_size(r->up_rate + r->down_rate, a));
    }
    put(&l, "%5s %5s ", ctl_short_size(t->written_bytes, a), threads);
    put(&l, "%6s ", ctl_registry_wish_text(t, threads));
    put(&l, "%4s ", ratio(t->slowdown, a));
    if (p->width >= WIDE)
        put(&l, "%4s ", ratio(t->placed_slowdown, a));
    put(&l, "%4s", short_age(ctl_registry_age(e), a));
    flush_line(p, &l, NULL);
}

static void print_sentence(struct paper *p, const char *text)
{
    struct screen_line l = {.len = 0};

    put(&l, "%s", text);
    flush_line(p, &l, NULL);
}

/* Who makes way for whom, below all rows as far as there is room. */
static void print_making_way(const struct registry_view *v, struct paper *p)
{
    char text[256];

    for (unsigned i = 0; i < v->n; i++) {
        if (ctl_registry_pacing_text(v, &v->entry[i], text, sizeof(text)))
            print_sentence(p, text);
        if (ctl_registry_cache_text(&v->entry[i], text, sizeof(text)))
            print_sentence(p, text);
    }
}

void top_print(const struct top_screen *s, FILE *to, unsigned width, unsigned height, bool colour,
               bool live)
{
    struct paper p = {.to = to, .width = width, .left = height, .colour = colour, .live = live};
    struct screen_line l = {.len = 0};
    unsigned foot = live && height > 8 ? 2 : 0; /* with a free line above */

    p.left -= HY_MIN(foot, p.left);
    if (!s->exists) {
        put(&l, "No registry at %s: no program shares DRAM now.", s->path);
        flush_line(&p, &l, NULL);
    } else {
        print_head(s, &p);
        print_titles(&p);
        for (unsigned i = 0; i < s->view.n; i++) {
            if (p.left == 1 && i + 1 < s->view.n) {
                l.len = 0;
                put(&l, "... and %u more", s->view.n - i);
                flush_line(&p, &l, NULL);
                break;
            }
            print_row(&s->row[i], &p);
        }
        print_making_way(&s->view, &p);
    }
    if (live && p.left + foot > 0)
        fputs("\n\033[J", to); /* what the screen before had further down */
    if (foot == 0)
        return;
    l.len = 0;
    put(&l, "q quit  sort: d DRAM p PM m moves w writ t thr s slow i PID n name, r reverse");
    fprintf(to, "\033[%u;1H%.*s", height, (int)HY_MIN(l.len, (size_t)width), l.text);
}

void top_json(const struct top_screen *s, FILE *to)
{
    struct ctl_json j = {.to = to};

    ctl_registry_json_begin(&j, s->path, &s->view, s->exists);
    for (unsigned i = 0; i < s->view.n; i++) {
        ctl_json_open(&j, NULL, '{');
        ctl_registry_json_entry(&j, &s->row[i].entry);
        ctl_json_number(&j, "promoted_per_s", s->row[i].up_rate);
        ctl_json_number(&j, "demoted_per_s", s->row[i].down_rate);
        ctl_json_close(&j, '}');
    }
    ctl_registry_json_end(&j, &s->view);
}
