/* SPDX-License-Identifier: BSD-2-Clause
 * What pmemu.h offers to programs. */
#include "core/core.h"
#include "core/pages.h"
#include "pmemu.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int64_t pmemu_vtime_ns(void)
{
    emu_settle();
    return emu_now() / 1000;
}

EXPORT int pmemu_set_tier(const void *address, size_t bytes, int tier)
{
    return emu_pages_set((uintptr_t)address, bytes, tier ? EMU_PM : EMU_DRAM);
}

EXPORT int pmemu_tier_of(const void *address)
{
    return (int)emu_tier_of((uintptr_t)address);
}
