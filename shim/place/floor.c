/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/floor.h"

#include "heap/heap.h"
#include "place/policy.h"
#include "settings/rules/options.h"
#include "sys/emulator.h"

/* With less than this part of it free, DRAM is short; with twice as much it is no longer. */
#define SHORT 16
/* It is ample while at least this part is free. */
#define AMPLE 2
/* A node's last part lies below the kernel's watermarks: it goes to another node instead. */
#define WATERMARK 64

static bool on;
static uint64_t left_of; /* at the last look: free DRAM and what was charged, together */

void floor_init(const struct hy_settings *s, const struct runtime_machine *m, uint64_t limit,
                uint64_t shared)
{
    on = (s->policy == HY_POLICY_AUTO || s->policy == HY_POLICY_FIRST_FIT) &&
         s->dram_allocator == HY_DRAM_MEMKIND && m->backend != HY_PM_FILE &&
         limit >= m->dram_bytes && shared >= m->dram_bytes;
}

bool floor_on(void)
{
    return on;
}

uint64_t floor_dram_free(void)
{
    const struct runtime_machine *m = &hy_machine;
    struct topology t;
    if (emulator_open())
        return emulator_dram_free();
    if (m->backend != HY_PM_NODE || topology_read("/sys", &t) != 0)
        return UINT64_MAX;
    uint64_t free = topology_bytes(&t, m->dram_mask, true), kept = m->dram_bytes / WATERMARK;
    return free > kept ? free - kept : 0;
}

uint64_t floor_dram_left(void)
{
    uint64_t all = __atomic_load_n(&left_of, __ATOMIC_RELAXED), used = policy_dram_used();
    return all > used ? all - used : 0;
}

void floor_tick(void)
{
    static bool is_short;
    if (!on)
        return;
    uint64_t used = policy_dram_used(), free = floor_dram_free();
    __atomic_store_n(&left_of, free + HY_MIN(used, UINT64_MAX - free), __ATOMIC_RELAXED);
    is_short = free < hy_machine.dram_bytes / (is_short ? SHORT / 2 : SHORT);
    bool is_ample = free >= hy_machine.dram_bytes / AMPLE;
    heap_set_dram(is_short ? HEAP_DRAM_SHORT : is_ample ? HEAP_DRAM_AMPLE : HEAP_DRAM_SCARCE);
}
