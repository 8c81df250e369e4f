/* SPDX-License-Identifier: BSD-2-Clause
 * See profile_write.h. Decimals are put together from whole numbers, as printf's point
 * depends on the locale of the host. */
#include "record/rules/profile_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/textbuf.h"

/* Would the parser read this very text again? Not with what begins a comment behind a blank,
 * blanks at its ends, or too much for a line. */
static bool is_plain(const char *key, const char *text)
{
    size_t len = strlen(text);

    return len > 0 && strlen(key) + 3 + len <= PROFILE_LINE_MAX && !text_has_control(text, len) &&
           text[0] != ' ' && text[len - 1] != ' ' && text[0] != ';' && !strstr(text, " ;");
}

static void add_text(struct textbuf *o, const char *key, const char *text)
{
    if (is_plain(key, text))
        textbuf_add(o, "%s = %s\n", key, text);
    else if (text[0] != '\0')
        textbuf_add(o, "# %s: its text cannot be written here\n", key);
}

static void add_milli(struct textbuf *o, double value)
{
    uint64_t milli = (uint64_t)(HY_MAX(value, 0.0) * 1000 + 0.5);
    textbuf_add(o, " %" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));
}

static void add_decimal(struct textbuf *o, const char *key, double value, double least)
{
    if (value < least || value >= 1e12)
        return;
    textbuf_add(o, "%s =", key);
    add_milli(o, value);
    textbuf_add(o, "\n");
}

static void add_size(struct textbuf *o, const char *key, uint64_t bytes)
{
    char size[32];

    if (bytes == 0)
        return;
    text_format_size(HY_MIN(bytes, TEXT_SIZE_LIMIT), size, sizeof(size));
    textbuf_add(o, "%s = %s\n", key, size);
}

static void add_count(struct textbuf *o, const char *key, uint64_t n)
{
    if (n > 0)
        textbuf_add(o, "%s = %" PRIu64 "\n", key, n);
}

static void add_comment(struct textbuf *o, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        textbuf_add(o, "# %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void write_app(struct textbuf *o, const struct profile *p)
{
    char id[2 * BUILD_ID_MAX + 1];

    textbuf_add(o, "[app]\n");
    add_text(o, "exe", p->exe);
    add_text(o, "path", p->path);
    if (p->build_id_len > 0) {
        build_id_format(p->build_id, p->build_id_len, id, sizeof(id));
        textbuf_add(o, "build-id = %s\n", id);
    }
    add_text(o, "args", p->args);
    if (p->cls != HY_CLASS_UNKNOWN)
        textbuf_add(o, "class = %s\n", hy_class_name(p->cls));
    if (p->slowdown > 0)
        add_decimal(o, "slowdown", HY_MIN(HY_MAX(p->slowdown, 0.001), 1000.0), 0.001);
    if (p->write_intensive >= 0)
        textbuf_add(o, "write-intensive = %d\n", p->write_intensive);
    add_size(o, "footprint", p->footprint);
    add_decimal(o, "exposure", p->exposure, 0);
    add_decimal(o, "foreseen", p->foreseen, 0);
    add_decimal(o, "busy-threads", p->busy_threads, 0.001);
}

static void write_options(struct textbuf *o, const struct profile *p)
{
    if (p->n_options == 0)
        return;
    textbuf_add(o, "\n[options]\n");
    for (unsigned i = 0; i < p->n_options; i++)
        add_text(o, options_info(p->option[i].id)->key, p->option[i].value);
}

static void write_phase(struct textbuf *o, unsigned i, const struct profile_phase *p)
{
    const char *cls;
    size_t n = text_choice_word(options_info(OPT_CLASS)->allowed, (int)p->cls, &cls);

    textbuf_add(o, "phase%u = %" PRIu64 " %.*s", i + 1, p->start_ms, (int)n, cls);
    if (p->slowdown >= 0.0005)
        add_milli(o, p->slowdown);
    textbuf_add(o, "\n");
}

static void write_behaviour(struct textbuf *o, unsigned i, const struct profile_behaviour *b)
{
    textbuf_add(o, "behaviour%u =", i + 1);
    add_milli(o, b->ms);
    textbuf_add(o, " %" PRIu64 " %" PRIu64, b->reads, b->writes);
    add_milli(o, b->slowdown);
    add_milli(o, b->exposure);
    add_milli(o, b->foreseen);
    add_milli(o, b->busy_threads);
    textbuf_add(o, "\n");
}

static void write_frame(struct textbuf *o, const struct hy_frame *f)
{
    char id[2 * BUILD_ID_MAX + 1];
    /* Zero-padded: the parser pads a shorter one in the same way. */
    unsigned len = BUILD_ID_MAX;

    while (len > 1 && f->build_id[len - 1] == 0)
        len--;
    build_id_format(f->build_id, len, id, sizeof(id));
    textbuf_add(o, "%s+0x%" PRIx64, id, f->offset);
}

/* Times in whole us: none is that short that it would be of use. */
static void write_task(struct textbuf *o, unsigned i, const struct profile_task *t)
{
    char text[32];

    textbuf_add(o, "task%u = ", i + 1);
    write_frame(o, &t->code);
    for (unsigned k = 0; k < t->needs; k++) {
        text_format_size(HY_MIN(t->bytes[k], TEXT_SIZE_LIMIT), text, sizeof(text));
        textbuf_add(o, "%c%s", k == 0 ? ' ' : '+', text);
    }
    textbuf_add(o, " %" PRIu64, t->count);
    for (int tier = 0; tier < HY_TIERS; tier++) {
        uint64_t ns = (t->ns[tier] + 500) / 1000 * 1000;

        text_format_time(ns, text, sizeof(text));
        textbuf_add(o, " %s", ns ? text : "-");
    }
    textbuf_add(o, "\n");
}

static void write_source(struct textbuf *o, const struct profile *p)
{
    const struct profile_source *s = &p->source;

    if (p->threads[HY_DRAM] || p->threads[HY_PM] || p->threads_seen) {
        textbuf_add(o, "\n[threads]\n");
        add_count(o, "dram", p->threads[HY_DRAM]);
        add_count(o, "pm", p->threads[HY_PM]);
        add_count(o, "seen", p->threads_seen);
    }
    if (p->n_phases > 0)
        textbuf_add(o, "\n[phases]\n");
    for (unsigned i = 0; i < p->n_phases; i++)
        write_phase(o, i, &p->phases[i]);
    if (p->n_behaviours > 0)
        textbuf_add(o, "\n[behaviours]\n");
    for (unsigned i = 0; i < p->n_behaviours; i++)
        write_behaviour(o, i, &p->behaviours[i]);
    if (p->n_tasks > 0)
        textbuf_add(o, "\n[tasks]\n");
    for (unsigned i = 0; i < p->n_tasks; i++)
        write_task(o, i, &p->tasks[i]);
    textbuf_add(o, "\n[machine]\n");
    add_text(o, "figures", s->figures);
    add_size(o, "dram", s->dram_bytes);
    add_size(o, "pm", s->pm_bytes);
    add_count(o, "cpus", s->cpus);
    textbuf_add(o, "\n[recorded]\n");
    add_text(o, "libhybrid", s->libhybrid);
    add_text(o, "method", s->method);
    add_count(o, "runs", s->runs);
    add_count(o, "windows", s->windows);
    add_count(o, "milliseconds", s->ms);
    add_decimal(o, "confidence", s->confidence, 0.001);
    add_count(o, "reads", s->reads);
    add_count(o, "writes", s->writes);
    add_text(o, "accesses", s->accesses);
    add_count(o, "samples", s->samples);
    add_count(o, "period", s->period);
    if (s->samples > 0) {
        add_decimal(o, "known", s->known, 0);
        add_decimal(o, "mapped", s->mapped, 0);
    }
}

static void add_counts(struct textbuf *o, const char *key, const uint64_t *n, unsigned count)
{
    if (count == 0)
        return;
    textbuf_add(o, "%s =", key);
    for (unsigned i = 0; i < count; i++)
        textbuf_add(o, " %" PRIu64, n[i]);
    textbuf_add(o, "\n");
}

static void write_heat(struct textbuf *o, const struct profile_site *s)
{
    uint64_t list[PROFILE_BINS];

    for (unsigned i = 0; i < PROFILE_BINS; i++)
        list[i] = s->heat[i];
    add_counts(o, "heat", list, s->has_heat ? PROFILE_BINS : 0);
}

static void write_site(struct textbuf *o, const struct profile_site *s, bool accesses)
{
    textbuf_add(o, "\n[site %s]\n", s->name);
    for (unsigned f = 0; f < s->n_frames; f++) {
        textbuf_add(o, "frame%u = ", f);
        write_frame(o, &s->frames[f]);
        textbuf_add(o, "\n");
    }
    add_count(o, "nth", s->nth);
    if (s->has_tier)
        textbuf_add(o, "tier = %s\n", hy_tier_name(s->tier));
    add_count(o, "count", s->count);
    add_size(o, "bytes", s->bytes);
    add_size(o, "live-bytes", s->live_bytes);
    add_size(o, "min-size", s->min_size);
    add_size(o, "max-size", s->max_size);
    add_decimal(o, "from", s->from, 0.001);
    add_decimal(o, "until", s->until, 0.001);
    if (accesses)
        textbuf_add(o, "reads = %" PRIu64 "\nwrites = %" PRIu64 "\n", s->reads, s->writes);
    add_counts(o, "reads-in", s->reads_in, s->n_reads_in);
    add_counts(o, "writes-in", s->writes_in, s->n_writes_in);
    write_heat(o, s);
}

int64_t profile_write(const struct profile *p, const struct profile_module *modules,
                      unsigned n_modules, const char *comment, char *buf, size_t cap)
{
    struct textbuf o = {.buf = buf, .cap = cap, .full = cap == 0};
    char id[2 * BUILD_ID_MAX + 1];
    bool accesses = p->source.samples > 0;

    for (unsigned i = 0; i < p->n_sites; i++)
        accesses |= p->sites[i].reads > 0 || p->sites[i].writes > 0;
    add_comment(&o, comment);
    write_app(&o, p);
    write_options(&o, p);
    write_source(&o, p);
    if (n_modules > 0)
        textbuf_add(&o, "\n[modules]\n");
    for (unsigned i = 0; i < n_modules; i++) {
        build_id_format(modules[i].id, BUILD_ID_MAX, id, sizeof(id));
        if (is_plain(id, modules[i].path))
            textbuf_add(&o, "%s = %s\n", id, modules[i].path);
    }
    for (unsigned i = 0; i < p->n_sites; i++)
        write_site(&o, &p->sites[i], accesses);
    return o.full ? -ENOSPC : (int64_t)o.len;
}

/* --- which sites ------------------------------------------------------------------ */

struct sums {
    double lines, live, bytes;
};

static double weight_of(const struct profile_site *s, const struct sums *all)
{
    double w = all->bytes > 0 ? (double)s->bytes / all->bytes : 0;

    if (all->live > 0)
        w = HY_MAX(w, (double)s->live_bytes / all->live);
    if (all->lines > 0)
        w = HY_MAX(w, ((double)s->reads + (double)s->writes) / all->lines);
    return w;
}

static void swap_sites(struct profile_site *a, struct profile_site *b)
{
    struct profile_site t = *a;
    *a = *b;
    *b = t;
}

/* Heap sort, lightest at the root: qsort may allocate. */
static void sift(struct profile_site *s, size_t at, size_t n, const struct sums *all)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;

        for (size_t c = child; c < n && c < child + 2; c++)
            if (weight_of(&s[c], all) < weight_of(&s[least], all))
                least = c;
        if (least == at)
            return;
        swap_sites(&s[at], &s[least]);
        at = least;
    }
}

unsigned profile_rank_sites(struct profile *p, double share, unsigned most)
{
    struct sums all = {0, 0, 0};
    unsigned kept = 0, before = p->n_sites;

    for (unsigned i = 0; i < before; i++) {
        all.lines += (double)p->sites[i].reads + (double)p->sites[i].writes;
        all.live += (double)p->sites[i].live_bytes;
        all.bytes += (double)p->sites[i].bytes;
    }
    for (size_t i = before / 2; i-- > 0;)
        sift(p->sites, i, before, &all);
    for (size_t n = before; n > 1; n--) {
        swap_sites(&p->sites[0], &p->sites[n - 1]);
        sift(p->sites, 0, n - 1, &all);
    }
    while (kept < before && kept < most && weight_of(&p->sites[kept], &all) >= share)
        kept++;
    p->n_sites = kept;
    return before - kept;
}

void profile_number_sites(struct profile *p)
{
    for (unsigned i = 0; i < p->n_sites; i++)
        if (p->sites[i].name[0] == '\0')
            (void)snprintf(p->sites[i].name, sizeof(p->sites[i].name), "s%u", i + 1);
}
