/* SPDX-License-Identifier: BSD-2-Clause
 * See events.h. */
#include "program/events.h"

#define PAGE_UNITS 64u /* of 64 bytes, in a page */

void emu_snapshot(const struct emu_process *p, struct emu_snapshot *ret)
{
    for (int c = 0; c < EMU_COUNTER_COUNT; c++)
        ret->count[c] = atomic_load_explicit(&p->count[c], memory_order_relaxed);
    for (int t = 0; t < EMU_TIERS; t++)
        ret->pages[t] = atomic_load_explicit(&p->pages[t], memory_order_relaxed);
    ret->virtual_ps = atomic_load(&p->end) - atomic_load(&p->begin);
}

/* 64-byte transfers of a medium. */
static uint64_t units(const uint64_t *c, enum emu_tier t, bool write)
{
    if (t == EMU_PM)
        return c[write ? EMU_C_units_written_pm : EMU_C_units_read_pm];
    return write ? c[EMU_C_writebacks_dram] + c[EMU_C_pages_moved_up] * PAGE_UNITS
                 : c[EMU_C_llc_reads_dram] + c[EMU_C_pages_moved_down] * PAGE_UNITS;
}

uint64_t emu_energy_uj(const uint64_t *count, const struct emu_params *p, enum emu_tier t)
{
    const struct emu_medium *m = &p->medium[t];
    return (uint64_t)(((double)units(count, t, false) * (double)m->read_pj +
                       (double)units(count, t, true) * (double)m->write_pj) /
                      1e6);
}

static int64_t busy_ns(const uint64_t *count, const struct emu_costs *c, enum emu_tier t)
{
    return ((int64_t)units(count, t, false) * c->busy_ps[t][EMU_READ] +
            (int64_t)units(count, t, true) * c->busy_ps[t][EMU_WRITE]) /
           1000;
}

int64_t emu_event_value(const struct emu_snapshot *s, const struct emu_params *p,
                        const struct emu_costs *c, enum pmemu_event e)
{
    static const uint8_t plain[PMEMU_EVENT_COUNT] = {
        [PMEMU_TOT_INS] = EMU_C_instructions,
        [PMEMU_ACCESSES] = EMU_C_accesses,
        [PMEMU_L1_MISS] = EMU_C_l1_misses,
        [PMEMU_LLC_RD_DRAM] = EMU_C_llc_reads_dram,
        [PMEMU_LLC_RD_PM] = EMU_C_llc_reads_pm,
        [PMEMU_WB_DRAM] = EMU_C_writebacks_dram,
        [PMEMU_WB_PM] = EMU_C_writebacks_pm,
        [PMEMU_FORESEEN] = EMU_C_stream_misses,
        [PMEMU_COMPUTE_NS] = EMU_C_compute_ns,
        [PMEMU_STALL_NS] = EMU_C_stall_ns,
        [PMEMU_WAIT_NS] = EMU_C_wait_ns,
        [PMEMU_PAGES_UP] = EMU_C_pages_moved_up,
        [PMEMU_PAGES_DOWN] = EMU_C_pages_moved_down,
        [PMEMU_MOVE_NS] = EMU_C_move_ns,
        [PMEMU_CACHE_NS] = EMU_C_cache_ns,
    };
    const uint64_t *n = s->count;

    switch (e) {
    case PMEMU_TOT_CYC:
        return (int64_t)(n[EMU_C_compute_ns] + n[EMU_C_stall_ns] + n[EMU_C_wait_ns]) * 1000 /
               PMEMU_CYCLE_PS;
    case PMEMU_VTIME_NS:
        return s->virtual_ps / 1000;
    case PMEMU_PM_BYTES_RD:
        return (int64_t)n[EMU_C_units_read_pm] * 64;
    case PMEMU_PM_BYTES_WR:
        return (int64_t)n[EMU_C_units_written_pm] * 64;
    case PMEMU_DRAM_BUSY_NS:
        return busy_ns(n, c, EMU_DRAM);
    case PMEMU_PM_BUSY_NS:
        return busy_ns(n, c, EMU_PM);
    case PMEMU_DRAM_UJ:
        return (int64_t)emu_energy_uj(n, p, EMU_DRAM);
    case PMEMU_PM_UJ:
        return (int64_t)emu_energy_uj(n, p, EMU_PM);
    case PMEMU_CORE_UJ:
        return (int64_t)(n[EMU_C_core_nj] / 1000);
    case PMEMU_DRAM_PAGES:
        return s->pages[EMU_DRAM];
    case PMEMU_PM_PAGES:
        return s->pages[EMU_PM];
    default:
        return (int64_t)n[plain[e]];
    }
}
