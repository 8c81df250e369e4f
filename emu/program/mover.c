/* SPDX-License-Identifier: BSD-2-Clause
 * See mover.h. */
#include "program/mover.h"

#include <errno.h>

#include "core/core.h"
#include "pages/page_counts.h"
#include "pages/pages.h"

static void moved(uint64_t address, enum emu_tier from)
{
    emu_charge_move(address, from);
    emu_count(from == EMU_PM ? EMU_C_pages_moved_up : EMU_C_pages_moved_down, 1);
    if (from == EMU_DRAM)
        emu_page_count_wear(address, (uint32_t)(EMU_PAGE_BYTES >> EMU_LINE_SHIFT));
}

int64_t emu_move(uint64_t address, size_t bytes, enum emu_tier t)
{
    const uint64_t limit = (uint64_t)1 << 48;
    bool visiting;
    int64_t n = 0;
    int r = 0;

    if (address >= limit || bytes > limit - address)
        return -EINVAL;
    visiting = emu_visit();
    emu_charge_kernel(emu_core_params()->move_batch_ps);
    for (uint64_t end = address + bytes; r == 0 && address < end;
         address = (address | (EMU_PAGE_BYTES - 1)) + 1) {
        enum emu_tier from = emu_pages_look(address, NULL);
        uint64_t one = 0;
        r = emu_pages_set(address, 1, t, &one);
        if (one)
            moved(address & ~(EMU_PAGE_BYTES - 1), from);
        n += (int64_t)one;
    }
    if (visiting)
        emu_visit_end();
    return r < 0 ? r : n;
}
