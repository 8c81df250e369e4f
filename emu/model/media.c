/* SPDX-License-Identifier: BSD-2-Clause
 * Costs, the bandwidth calendar and PM blocks. See media.h. */
#include "model/media.h"

#include <stdbool.h>

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void emu_costs_init(struct emu_costs *c, const struct emu_params *p)
{
    const struct emu_medium *pm = &p->medium[EMU_PM];

    *c = (struct emu_costs){.hit_ps = p->hit_ps,
                            .load = (double)p->load_pct / 100,
                            .queue = (double)p->ctl_queue,
                            .yield = (double)p->ctl_dram_pct / 100,
                            .scatter_pct = (unsigned)p->scatter_pct};
    for (int t = 0; t < EMU_TIERS; t++) {
        const struct emu_medium *m = &p->medium[t];
        c->miss_ps[t][EMU_MISS_RANDOM] = m->read_ps / p->mlp_random;
        c->miss_ps[t][EMU_MISS_STREAM] = m->read_ps / m->mlp_stream;
        c->miss_ps[t][EMU_MISS_STORE] = m->read_ps / p->mlp_store;
        c->miss_ps[t][EMU_MISS_DEPENDENT] = m->read_ps;
        c->writeback_ps[t] = m->write_ps / p->mlp_writeback;
        c->busy_ps[t][EMU_READ] = 64000000 / m->read_mbs;
        c->busy_ps[t][EMU_WRITE] = 64000000 / m->write_mbs;
        c->pending_ps[t][EMU_READ] = later(c->busy_ps[t][EMU_READ], c->miss_ps[t][EMU_MISS_STREAM]);
        c->pending_ps[t][EMU_WRITE] = later(c->busy_ps[t][EMU_WRITE], c->writeback_ps[t]);
    }
    c->hold[EMU_READ][EMU_READ] = (double)p->ctl_read_pct / 100;
    c->hold[EMU_WRITE][EMU_WRITE] = (double)p->ctl_write_pct / 100;
    c->hold[EMU_READ][EMU_WRITE] = c->hold[EMU_WRITE][EMU_READ] = (double)p->ctl_cross_pct / 100;
    while ((int64_t)64 << c->block_shift < pm->block)
        c->block_shift++;
}

uint32_t emu_media_units(struct emu_media *m, const struct emu_costs *c, enum emu_tier t,
                         uint64_t line, bool write)
{
    uint64_t block = line >> c->block_shift;
    _Atomic uint64_t *slot;
    bool buffered;

    if (t == EMU_DRAM || c->block_shift == 0)
        return 1;
    slot = (write ? m->write_block : m->read_block) +
           ((block * 0x9E3779B97F4A7C15u) >> 40) % EMU_BUFFERED_BLOCKS;
    buffered = atomic_load_explicit(slot, memory_order_relaxed) == block;
    /* Lines are written back when the cache wants the room, which is not in the order
     * in which they were written: most come when their block has left the buffer. */
    if (buffered && write)
        buffered = ((line * 0xD1B54A32D192ED03u) >> 40) % 100 >= c->scatter_pct;
    if (buffered)
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

/* Queueing before saturation: the factor on a latency. */
static double loaded(const struct emu_costs *c, double rho)
{
    rho = rho < 0.95 ? rho : 0.95;
    return 1 + c->load * rho / (1 - rho);
}

/* For which part of its requests to a medium a thread has those of one direction under
 * way, that need the medium for `own`, beside the others: both are overlapped. */
static double beside(int64_t own, int64_t other)
{
    return own >= other ? own > 0 : (double)own / (double)other;
}

/* What requests of others to PM do to those of a batch to DRAM. */
static double hindered(const struct emu_costs *c, const double others[EMU_DOINGS],
                       const int64_t busy[EMU_DIRECTIONS])
{
    const double at_pm[EMU_DIRECTIONS] = {others[EMU_READS_PM], others[EMU_WRITES_PM]};
    double slow = 1;

    for (int d = 0; d < EMU_DIRECTIONS; d++) {
        double part = beside(busy[d], busy[!d]);
        for (int e = 0; e < EMU_DIRECTIONS; e++) {
            double q = at_pm[e] < c->queue ? at_pm[e] : c->queue;
            slow += part * c->hold[d][e] * q * q;
        }
    }
    return slow;
}

static double share_of(double part, int64_t whole)
{
    return whole <= 0 ? 0 : part < (double)whole ? part / (double)whole : 1;
}

int64_t emu_media_settle(struct emu_media *m, const struct emu_costs *c, struct emu_past *past,
                         int64_t start, const struct emu_batch *b, int64_t *ret_wait)
{
    int64_t end = start + b->cpu_ps + b->hit_ps, ideal = end, wait = 0;
    int64_t busy[EMU_TIERS][EMU_DIRECTIONS], done[EMU_TIERS];
    double slow[EMU_TIERS], queued[EMU_TIERS], used[EMU_TIERS], others[EMU_DOINGS],
        share[EMU_DOINGS];

    emu_recent_others(&m->recent, past, start, others);
    for (int t = 0; t < EMU_TIERS; t++) {
        busy[t][EMU_READ] = b->read_units[t] * c->busy_ps[t][EMU_READ];
        busy[t][EMU_WRITE] = b->write_units[t] * c->busy_ps[t][EMU_WRITE];
    }
    slow[EMU_DRAM] = hindered(c, others, busy[EMU_DRAM]);
    slow[EMU_PM] = 1 + c->yield * (others[EMU_USES_DRAM] < 1 ? others[EMU_USES_DRAM] : 1);
    for (int t = 0; t < EMU_TIERS; t++) {
        enum emu_doing uses = t == EMU_DRAM ? EMU_USES_DRAM : EMU_USES_PM;
        double rho = emu_recent_damped(past, uses, others[uses]);
        ideal += b->stall_ps[t];
        queued[t] = slow[t] * loaded(c, rho);
        end += (int64_t)((double)b->stall_ps[t] * queued[t]);
        used[t] = (double)(busy[t][EMU_READ] + busy[t][EMU_WRITE]) * slow[t];
        done[t] = start;
        if (used[t] > 0)
            done[t] = emu_media_book(m, (enum emu_tier)t, start, (int64_t)used[t]);
    }
    end = later(end, done[EMU_DRAM]);
    if (done[EMU_PM] > end) {
        wait = done[EMU_PM] - end;
        end = done[EMU_PM];
    }
    for (int d = 0; d < EMU_DIRECTIONS; d++) {
        uint32_t units = d == EMU_READ ? b->read_units[EMU_PM] : b->write_units[EMU_PM];
        double there = (double)(units * c->pending_ps[EMU_PM][d]) * queued[EMU_PM] +
                       beside(busy[EMU_PM][d], busy[EMU_PM][!d]) * (double)wait;
        share[d == EMU_READ ? EMU_READS_PM : EMU_WRITES_PM] = share_of(there, end - start);
    }
    share[EMU_USES_DRAM] = share_of(used[EMU_DRAM], end - start);
    share[EMU_USES_PM] = share_of(used[EMU_PM], end - start);
    emu_recent_add(&m->recent, past, start, end, share);
    *ret_wait = end - ideal;
    return end;
}
