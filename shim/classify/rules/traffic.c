/* SPDX-License-Identifier: BSD-2-Clause */
#include "classify/rules/traffic.h"

/* The machine on which DRAM is `slow` times slower. */
static struct machine_figures slower_dram(const struct machine_figures *f, double slow)
{
    struct machine_figures s = *f;
    struct medium_figures *m = &s.medium[HY_DRAM];

    m->read_ns *= slow;
    m->write_ns *= slow;
    m->stream_ns *= slow;
    m->seq_read_mbs /= slow;
    m->seq_write_mbs /= slow;
    m->random_read_mbs /= slow;
    m->random_write_mbs /= slow;
    return s;
}

static double held_by_writers(const struct machine_figures *f, const struct work *k)
{
    const struct machine_figures slow = slower_dram(f, work_dram_beside_writers(f, k));
    double alone = work_time(f, k, k->pm_reads, k->pm_writes, k->threads).total_ns;
    double beside = work_time(&slow, k, k->pm_reads, k->pm_writes, k->threads).total_ns;

    return alone > 0 ? HY_MAX(beside / alone, 1) : 1;
}

struct traffic traffic_of(const struct machine_figures *f, const struct work *k, double elapsed_ns)
{
    const struct medium_figures *d = &f->medium[HY_DRAM], *pm = &f->medium[HY_PM];
    double reads = k->reads * k->pm_reads, writes = k->writes * k->pm_writes;
    struct traffic t = {.held = held_by_writers(f, k)};

    t.ebw[HY_DRAM] = (k->reads - reads + k->writes - writes) * d->read_ns / elapsed_ns;
    t.ebw[HY_PM] = (reads * pm->read_ns + writes * pm->write_ns) / elapsed_ns;
    t.written = reads + writes > 0 ? writes / (reads + writes) : 0;
    t.writers = work_pm_writers(f, k, elapsed_ns);
    return t;
}
