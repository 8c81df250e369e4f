/* SPDX-License-Identifier: BSD-2-Clause
 * The report at exit. See report.h. */
#include "core/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"

static const char *const names[] = {
#define EMU_X(n, h) #n,
    EMU_COUNTERS(EMU_X)
#undef EMU_X
};

struct derived {
    uint64_t dram_uj, pm_uj;
    double pm_years; /* until the cells are worn out at this rate, evenly; 0: no limit */
};

static struct derived derive(const uint64_t *c, int64_t virtual_ps)
{
    const struct emu_params *p = emu_core_params();
    const struct emu_medium *dram = &p->medium[EMU_DRAM], *pm = &p->medium[EMU_PM];
    double written = (double)c[EMU_C_units_written_pm] * 64;
    struct derived d = {0};

    d.dram_uj = (c[EMU_C_llc_reads_dram] * (uint64_t)dram->read_pj +
                 c[EMU_C_writebacks_dram] * (uint64_t)dram->write_pj) /
                1000000;
    d.pm_uj = (c[EMU_C_units_read_pm] * (uint64_t)pm->read_pj +
               c[EMU_C_units_written_pm] * (uint64_t)pm->write_pj) /
              1000000;
    if (pm->endurance > 0 && written > 0)
        d.pm_years = (double)pm->endurance * (double)p->pm_bytes / written *
                     ((double)virtual_ps * 1e-12) / (365.25 * 86400);
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

void emu_report(const char *where, const char *preset, const uint64_t *count, int64_t virtual_ps,
                uint64_t unseen)
{
    struct derived d = derive(count, virtual_ps);
    struct text t = {.json = strcmp(where, "1") != 0};
    int fd = STDERR_FILENO;

    put(&t, t.json ? "{\"pid\": %d, \"machine\": \"%s\"" : "pmemu[%d]: machine %s\n", (int)getpid(),
        preset);
    put_real(&t, "virtual_ms", (double)virtual_ps * 1e-9);
    for (int i = 0; i < EMU_COUNTER_COUNT; i++)
        put_count(&t, names[i], count[i]);
    put_count(&t, "dram_energy_uj", d.dram_uj);
    put_count(&t, "pm_energy_uj", d.pm_uj);
    put_count(&t, "pm_bytes_written", count[EMU_C_units_written_pm] * 64);
    put_count(&t, "unseen_blocks", unseen);
    put_real(&t, "pm_lifetime_years", d.pm_years);
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
