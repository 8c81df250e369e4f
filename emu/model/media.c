/* SPDX-License-Identifier: BSD-2-Clause
 * Costs, the bandwidth calendar and PM blocks. See media.h. */
#include "model/media.h"

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void emu_costs_init(struct emu_costs *c, const struct emu_params *p)
{
    const struct emu_medium *pm = &p->medium[EMU_PM];

    *c = (struct emu_costs){.hit_ps = p->hit_ps, .load_pct = p->load_pct};
    for (int t = 0; t < EMU_TIERS; t++) {
        const struct emu_medium *m = &p->medium[t];
        c->miss_ps[t][EMU_MISS_RANDOM] = m->read_ps / p->mlp_random;
        c->miss_ps[t][EMU_MISS_STREAM] = m->read_ps / p->mlp_stream;
        c->miss_ps[t][EMU_MISS_STORE] = m->read_ps / p->mlp_store;
        c->miss_ps[t][EMU_MISS_DEPENDENT] = m->read_ps;
        c->writeback_ps[t] = m->write_ps / p->mlp_writeback;
        c->read_busy_ps[t] = 64000000 / m->read_mbs;
        c->write_busy_ps[t] = 64000000 / m->write_mbs;
    }
    c->ctl_read_ps = c->read_busy_ps[EMU_DRAM] * p->ctl_read_pct / 100;
    c->ctl_write_ps = c->write_busy_ps[EMU_DRAM] * p->ctl_write_pct / 100;
    /* PM does not wait for the controller, so saturated PM traffic must leave some of
     * it free: what is booked would else grow without an end. */
    if (c->ctl_read_ps > c->read_busy_ps[EMU_PM] * 98 / 100)
        c->ctl_read_ps = c->read_busy_ps[EMU_PM] * 98 / 100;
    if (c->ctl_write_ps > c->write_busy_ps[EMU_PM] * 98 / 100)
        c->ctl_write_ps = c->write_busy_ps[EMU_PM] * 98 / 100;
    while ((int64_t)64 << c->block_shift < pm->block)
        c->block_shift++;
}

uint32_t emu_media_units(struct emu_media *m, const struct emu_costs *c, enum emu_tier t,
                         uint64_t line, bool write)
{
    uint64_t block = line >> c->block_shift;
    _Atomic uint64_t *slot;

    if (t == EMU_DRAM || c->block_shift == 0)
        return 1;
    slot = (write ? m->write_block : m->read_block) +
           ((block * 0x9E3779B97F4A7C15u) >> 40) % EMU_BUFFERED_BLOCKS;
    if (atomic_load_explicit(slot, memory_order_relaxed) == block)
        return 0;
    atomic_store_explicit(slot, block, memory_order_relaxed);
    return 1u << c->block_shift;
}

/* What is booked in window k, seen from a batch that wants it. */
static int64_t booked(uint64_t word, int64_t k)
{
    int32_t ahead = (int32_t)((uint32_t)k - (uint32_t)(word >> 32));
    if (ahead == 0)
        return (int64_t)(uint32_t)word;
    /* The slot holds an older window, or one so far ahead that it was left by an
     * earlier life of the machine: free. A little ahead: this batch is late by a
     * whole ring and its window is gone: full. */
    return ahead > 0 || ahead < -EMU_WINDOWS ? 0 : EMU_WINDOW_PS;
}

int64_t emu_media_book(struct emu_media *m, enum emu_tier t, int64_t start, int64_t busy)
{
    int64_t first = start / EMU_WINDOW_PS, left = busy;

    for (int64_t k = first; k - first < EMU_WINDOWS; k++) {
        _Atomic uint64_t *w = &m->calendar[t][k % EMU_WINDOWS];
        uint64_t old = atomic_load_explicit(w, memory_order_relaxed), new;
        int64_t used, take;
        do {
            used = booked(old, k);
            take = EMU_WINDOW_PS - used < left ? EMU_WINDOW_PS - used : left;
            new = (uint64_t)(uint32_t)k << 32 | (uint64_t)(used + take);
        } while (take > 0 && !atomic_compare_exchange_weak(w, &old, new));
        left -= take;
        if (left <= 0)
            return k == first ? start + busy : later(start + busy, k * EMU_WINDOW_PS + used + take);
    }
    return start + EMU_WINDOWS * EMU_WINDOW_PS; /* beyond the ring: the worst that it can tell */
}

/* Queueing before saturation, from the fill of the last four windows. */
static int64_t loaded(struct emu_media *m, const struct emu_costs *c, enum emu_tier t,
                      int64_t start, int64_t stall)
{
    int64_t k = start / EMU_WINDOW_PS, used = 0, all = 4 * EMU_WINDOW_PS;
    if (stall == 0)
        return 0;
    for (int64_t i = k - 4; i < k; i++) {
        uint64_t w = 0;
        if (i >= 0)
            w = atomic_load_explicit(&m->calendar[t][i % EMU_WINDOWS], memory_order_relaxed);
        if ((uint32_t)(w >> 32) == (uint32_t)i)
            used += (int64_t)(uint32_t)w;
    }
    if (used > all * 95 / 100)
        used = all * 95 / 100;
    return (int64_t)((double)stall * (double)used / (double)(all - used) * (double)c->load_pct /
                     100);
}

int64_t emu_media_settle(struct emu_media *m, const struct emu_costs *c, int64_t start,
                         const struct emu_batch *b, int64_t *ret_wait)
{
    const int64_t *stall = b->stall_ps;
    int64_t ideal = start + b->cpu_ps + b->hit_ps + stall[EMU_DRAM] + stall[EMU_PM];
    /* A PM access passes the controller as well: both queues. */
    int64_t end = ideal + loaded(m, c, EMU_DRAM, start, stall[EMU_DRAM] + stall[EMU_PM]) +
                  loaded(m, c, EMU_PM, start, stall[EMU_PM]);
    int64_t control =
        b->read_units[EMU_PM] * c->ctl_read_ps + b->write_units[EMU_PM] * c->ctl_write_ps;

    for (int t = 0; t < EMU_TIERS; t++) {
        int64_t busy =
            b->read_units[t] * c->read_busy_ps[t] + b->write_units[t] * c->write_busy_ps[t];
        if (busy > 0)
            end = later(end, emu_media_book(m, (enum emu_tier)t, start, busy));
    }
    /* Nobody waits for this booking, but DRAM traffic finds it there: PM hurts DRAM,
     * hardly the reverse. */
    if (control > 0)
        (void)emu_media_book(m, EMU_DRAM, start, control);
    *ret_wait = end - ideal;
    return end;
}
