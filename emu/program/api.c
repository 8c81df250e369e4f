/* SPDX-License-Identifier: BSD-2-Clause
 * What pmemu.h offers to programs, but for what one front end alone can do. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "program/events.h"
#include "program/mover.h"
#include "pages/page_counts.h"
#include "pages/pages.h"
#include "program/residence.h"
#include "program/samples.h"
#include "pmemu.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int64_t pmemu_vtime_ns(void)
{
    struct emu_machine *m = emu_core_machine();

    if (!emu_live()) {
        int64_t observed = emu_observed();
        if (observed >= 0)
            return observed / 1000;
        return m ? emu_clock_floor(&m->clock) / 1000 : 0;
    }
    emu_settle();
    return emu_now() / 1000;
}

static enum emu_tier tier_of(int t)
{
    return t ? EMU_PM : EMU_DRAM;
}

EXPORT int pmemu_set_tier(const void *address, size_t bytes, int tier)
{
    if (tier == PMEMU_NO_TIER)
        return emu_pages_unname((uintptr_t)address, bytes);
    return emu_pages_set((uintptr_t)address, bytes, tier_of(tier), NULL);
}

EXPORT int64_t pmemu_move(const void *address, size_t bytes, int tier)
{
    return emu_move((uintptr_t)address, bytes, tier_of(tier));
}

EXPORT int pmemu_tier_of(const void *address)
{
    return (int)emu_pages_look((uintptr_t)address, NULL);
}

EXPORT int pmemu_range_tiers(const void *address, size_t bytes, uint8_t *ret_tier)
{
    return emu_pages_tiers((uintptr_t)address, bytes, ret_tier);
}

EXPORT int64_t pmemu_dram_free(void)
{
    return emu_residence_dram_free();
}

EXPORT void pmemu_discard(const void *address, size_t bytes)
{
    emu_pages_discard((uintptr_t)address, bytes);
}

EXPORT uint64_t pmemu_tier_bytes(int tier)
{
    const struct emu_params *p = emu_core_params();
    return (uint64_t)(tier_of(tier) == EMU_PM ? p->pm_bytes : p->dram_bytes);
}

EXPORT int pmemu_fill_ways(int ways)
{
    if (!emu_core_machine())
        return -ESRCH;
    if (ways < 0 || ways > (int)EMU_LLC_WAYS)
        return -EINVAL;
    if (ways > 0)
        emu_core_fill_ways((unsigned)ways);
    return (int)EMU_LLC_WAYS;
}

EXPORT void pmemu_ignore_thread(void)
{
    emu_thread_ignore();
}

EXPORT int pmemu_hold(int64_t vtime_ns)
{
    return emu_observe(vtime_ns < 0 ? -1 : vtime_ns * 1000);
}

EXPORT int64_t pmemu_event(int event)
{
    struct emu_snapshot now;
    const struct emu_process *p = emu_core_process();

    if (event < 0 || event >= PMEMU_EVENT_COUNT || !p)
        return -EINVAL;
    emu_settle_now(); /* PAPI may hold a lock that slower threads want */
    emu_snapshot(p, &now);
    return emu_event_value(&now, emu_core_params(), emu_core_costs(), (enum pmemu_event)event);
}

EXPORT int pmemu_count_pages(void)
{
    return emu_page_counts_start();
}

EXPORT int pmemu_range_counts(const void *address, size_t bytes, struct pmemu_range_counts *ret)
{
    return emu_page_counts_get((uintptr_t)address, bytes, ret);
}

EXPORT int pmemu_samples_open(unsigned events, uint64_t period, size_t bytes,
                              struct pmemu_ring **ret)
{
    int e = errno, r;
    long memory = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);

    r = memory == -1 ? -errno : emu_samples_open(events, period, (void *)memory, bytes);
    if (memory != -1 && r < 0)
        syscall(SYS_munmap, memory, bytes);
    if (r == 0)
        *ret = (struct pmemu_ring *)memory; /* NOLINT: the kernel's address */
    errno = e;
    return r;
}

EXPORT void pmemu_samples_close(void)
{
    emu_samples_close();
}

EXPORT void pmemu_away(uint64_t key)
{
    emu_away(key);
    emu_self.told_away = true;
}

EXPORT void pmemu_back(int64_t vtime_ns)
{
    emu_self.told_away = false;
    emu_back(vtime_ns < 0 ? -1 : vtime_ns * 1000);
}

EXPORT void pmemu_release(uint64_t key, int64_t vtime_ns)
{
    emu_release(key, vtime_ns * 1000);
}
