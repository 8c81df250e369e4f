/* SPDX-License-Identifier: BSD-2-Clause
 * The report at exit. See report.h. */
#include "program/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"
#include "program/events.h"
#include "pages/page_counts.h"
#include "pages/pages.h"

#define KEPT_FD 200 /* above what programs count on getting */

static const char *const names[] = {
#define EMU_X(n, h) #n,
    EMU_COUNTERS(EMU_X)
#undef EMU_X
};

/* Of the mean cell's life, what wear levelling gets out of the whole: memos (paper 002), 7.1. */
#define WORN_EVENLY 0.95

struct derived {
    uint64_t dram_uj, pm_uj;
    double pm_years; /* until the cells are worn out at this rate, evenly; 0: no limit */
};

static double years(double writes_a_cell, double cells, double writes, int64_t virtual_ps)
{
    return writes_a_cell * cells / writes * ((double)virtual_ps * 1e-12) / (365.25 * 86400);
}

static struct derived derive(const uint64_t *c, int64_t virtual_ps)
{
    const struct emu_params *p = emu_core_params();
    const struct emu_medium *pm = &p->medium[EMU_PM];
    double written = (double)c[EMU_C_units_written_pm] * 64;
    struct derived d = {0};

    d.dram_uj = emu_energy_uj(c, p, EMU_DRAM);
    d.pm_uj = emu_energy_uj(c, p, EMU_PM);
    if (pm->endurance > 0 && written > 0)
        d.pm_years = years((double)pm->endurance, (double)p->pm_bytes, written, virtual_ps);
    return d;
}

struct text {
    bool json;
    size_t n;
    char buf[4096];
};

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
    __builtin_va_list ap;
    int n;

    __builtin_va_start(ap, format);
    n = vsnprintf(t->buf + t->n, sizeof(t->buf) - t->n, format, ap);
    __builtin_va_end(ap);
    if (n > 0 && (size_t)n < sizeof(t->buf) - t->n)
        t->n += (size_t)n;
}

static void put_count(struct text *t, const char *name, uint64_t v)
{
    if (t->json)
        put(t, ", \"%s\": %" PRIu64, name, v);
    else
        put(t, "  %-20s %20" PRIu64 "\n", name, v);
}

static void put_real(struct text *t, const char *name, double v)
{
    if (t->json)
        put(t, ", \"%s\": %.6f", name, v);
    else
        put(t, "  %-20s %20.3f\n", name, v);
}

static void put_word(struct text *t, const char *name, const char *v)
{
    put(t, t->json ? ", \"%s\": \"%s\"" : "  %-20s %20s\n", name, v);
}

/* With counts by page: how unevenly PM is written. Without levelling the page that is written
 * most ends its life. */
static void put_wear(struct text *t, int64_t virtual_ps)
{
    const struct emu_medium *pm = &emu_core_params()->medium[EMU_PM];
    struct pmemu_range_counts c;
    double life = 0;

    if (emu_page_counts_get(0, (size_t)1 << 48, &c) < 0)
        return;
    if (pm->endurance > 0 && c.most_pm_writes > 0)
        life = years((double)pm->endurance, (double)(EMU_PAGE_BYTES >> EMU_LINE_SHIFT),
                     (double)c.most_pm_writes, virtual_ps);
    put_count(t, "pages_written_pm", c.pages_written_pm);
    put_count(t, "most_page_writes_pm", c.most_pm_writes);
    put_real(t, "mean_page_writes_pm",
             c.pages_written_pm ? (double)c.pm_writes / (double)c.pages_written_pm : 0);
    put_real(t, "pm_lifetime_years_worst_page", life);
}

const char *emu_invalid(const struct emu_result *r, char *buf, size_t bytes)
{
    static const char *const why[] = {
        "threads not emulated, more than the machine has slots",
        "threads computed for long without a call-out, and others did not wait",
        "batches beyond the calendar of bandwidth",
    };
    const uint64_t n[] = {r->count[EMU_C_lost_threads], r->lost_runs, r->count[EMU_C_overflows]};

    for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++)
        if (n[i] > 0) {
            snprintf(buf, bytes, "%" PRIu64 " %s", n[i], why[i]);
            return buf;
        }
    return NULL;
}

static int kept = -1;

void emu_report_keep_stderr(void)
{
    kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, KEPT_FD);
}

void emu_report(const char *where, const char *preset, const char *end, const struct emu_result *r)
{
    const uint64_t *count = r->count;
    int64_t virtual_ps = r->virtual_ps;
    struct derived d = derive(count, virtual_ps);
    struct text t = {.json = strcmp(where, "1") != 0};
    char buf[128];
    const char *invalid = emu_invalid(r, buf, sizeof(buf));
    int fd = kept >= 0 ? kept : STDERR_FILENO;

    put(&t, t.json ? "{\"pid\": %d, \"machine\": \"%s\"" : "pmemu[%d]: machine %s\n", (int)getpid(),
        preset);
    put_real(&t, "virtual_ms", (double)virtual_ps * 1e-9);
    for (int i = 0; i < EMU_COUNTER_COUNT; i++)
        put_count(&t, names[i], count[i]);
    put_count(&t, "dram_energy_uj", d.dram_uj);
    put_count(&t, "pm_energy_uj", d.pm_uj);
    put_count(&t, "pm_bytes_written", count[EMU_C_units_written_pm] * 64);
    put_count(&t, "unseen_blocks", r->unseen_blocks);
    put_count(&t, "lost_runs", r->lost_runs);
    put_word(&t, "end", end);
    put_word(&t, "valid", invalid ? "no" : "yes");
    if (invalid)
        put(&t, t.json ? ", \"reason\": \"%s\"" : "  not valid: %s\n", invalid);
    put_real(&t, "pm_lifetime_years", d.pm_years);
    put_wear(&t, virtual_ps);
    if (t.json)
        put(&t, "}\n");
    if (t.json)
        fd = open(where, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        dprintf(STDERR_FILENO, "pmemu[%d]: HYBRID_EMU_STATS=%s: %s\n", (int)getpid(), where,
                strerror(errno));
        return;
    }
    if (write(fd, t.buf, t.n) < 0 && t.json)
        dprintf(STDERR_FILENO, "pmemu[%d]: %s: %s\n", (int)getpid(), where, strerror(errno));
    if (t.json)
        close(fd);
}
