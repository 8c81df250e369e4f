/* SPDX-License-Identifier: BSD-2-Clause
 * Room on the media. See room.h. */
#include "machine/room.h"

static void note_most(_Atomic uint64_t *most, int64_t now)
{
    uint64_t old = atomic_load_explicit(most, memory_order_relaxed);
    while (now > 0 && old < (uint64_t)now &&
           !atomic_compare_exchange_weak(most, &old, (uint64_t)now))
        ;
}

int64_t emu_room_used(struct emu_machine *m, enum emu_tier t)
{
    int64_t sum = 0;
    for (int i = 0; i < EMU_PROCESSES; i++)
        if (atomic_load(&m->process[i].pid) != 0)
            sum += atomic_load(&m->process[i].pages[t]);
    return sum;
}

int64_t emu_room_free(struct emu_machine *m)
{
    int64_t n = m->params.dram_bytes / EMU_ROOM_PAGE - emu_room_used(m, EMU_DRAM);

    if (m->params.dram_bytes <= 0)
        return INT64_MAX;
    return n > 0 ? n * EMU_ROOM_PAGE : 0;
}

bool emu_room_take(struct emu_machine *m, struct emu_process *self, enum emu_tier t)
{
    int64_t limit = m->params.dram_bytes, mine = atomic_fetch_add(&self->pages[t], 1) + 1;

    /* Counted before it is compared, so two processes may both stand back from the last
     * page, but never both have it. */
    if (t == EMU_DRAM && limit > 0 && emu_room_used(m, t) * EMU_ROOM_PAGE > limit) {
        atomic_fetch_sub(&self->pages[t], 1);
        return false;
    }
    note_most(&self->count[t == EMU_DRAM ? EMU_C_dram_pages : EMU_C_pm_pages], mine);
    return true;
}

void emu_room_give(struct emu_process *self, enum emu_tier t)
{
    atomic_fetch_sub(&self->pages[t], 1);
}
