/* SPDX-License-Identifier: BSD-2-Clause
 * Pages that leave the caches or move to the other medium. See core.h. */
#include "core/inside.h"

#include <string.h>

/* Moved pages that threads can look up; who is further behind forgets its whole L1. */
#define MOVES 256u

static _Atomic uint64_t moved[MOVES];
static _Atomic uint32_t moves;

void emu_drop_moved(struct emu_thread *t)
{
    uint32_t n = atomic_load_explicit(&moves, memory_order_acquire);
    if (n - t->moves_seen >= MOVES)
        memset(&t->l1, 0, sizeof(t->l1));
    for (uint32_t i = t->moves_seen; i != n && n - i < MOVES; i++)
        emu_l1_drop(&t->l1, atomic_load_explicit(&moved[i % MOVES], memory_order_relaxed),
                    EMU_PAGE_LINES);
    t->moves_seen = n;
}

void emu_drop_page(uint64_t address, bool is_move)
{
    uint64_t line = address >> EMU_LINE_SHIFT;

    if (!atomic_load(&emu_core.running))
        return;
    emu_llc_drop(&emu_core.llc, line, EMU_PAGE_LINES, emu_core.salt);
    emu_l1_drop(&emu_self.l1, line, EMU_PAGE_LINES);
    if (is_move)
        atomic_store_explicit(&moved[atomic_fetch_add(&moves, 1) % MOVES], line,
                              memory_order_release);
}

/* `wait` for a medium, `fixed` for the kernel's work: no stall and no instruction of the
 * program. */
static void charge(struct emu_thread *t, enum emu_tier on, int64_t wait, int64_t fixed)
{
    t->batch.stall_ps[on] += wait;
    t->batch.hit_ps += fixed;
    t->move_ps += wait + fixed;
    t->left -= EMU_FIX(wait + fixed);
    if (t->left < 0)
        emu_settle_inside(t, SETTLE_ORDERED);
}

void emu_charge_move(uint64_t address, enum emu_tier from)
{
    struct emu_thread *t = &emu_self;
    enum emu_tier to = from == EMU_DRAM ? EMU_PM : EMU_DRAM;
    uint64_t line = address >> EMU_LINE_SHIFT;
    int64_t wait = EMU_PAGE_LINES * (emu_core.costs.miss_ps[from][EMU_MISS_STREAM] +
                                     emu_core.costs.writeback_ps[to]);

    if (t->mode != EMU_T_LIVE || !emu_enter(t))
        return;
    for (uint64_t i = line; i < line + EMU_PAGE_LINES; i++) {
        t->batch.read_units[from] +=
            emu_media_units(&emu_core.machine->media, &emu_core.costs, from, i, false);
        t->batch.write_units[to] +=
            emu_media_units(&emu_core.machine->media, &emu_core.costs, to, i, true);
    }
    charge(t, from, wait, emu_core.params.move_page_ps);
    emu_leave(t);
}

void emu_charge_kernel(int64_t ps)
{
    struct emu_thread *t = &emu_self;
    if (t->mode != EMU_T_LIVE || !emu_enter(t))
        return;
    charge(t, EMU_DRAM, 0, ps);
    emu_leave(t);
}
