/* SPDX-License-Identifier: BSD-2-Clause */
#include "place/floor.h"

#include "classifier.h"
#include "classify/figures.h"
#include "heap/heap.h"
#include "place/policy.h"
#include "place/rules/idle.h"
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

/* Had what is freed of DRAM better be kept? By what the last window of counts tells. */
static bool idle_is_kept(void)
{
    static struct idle_prices prices;
    static uint64_t last_ns, last_retaken;
    struct heap_stats h;
    struct policy_view v;
    struct window w;
    struct work work;
    enum stall_known known;
    uint64_t number, now = emulator_clock_ns(), before_ns = last_ns, before = last_retaken;
    heap_get_stats(HY_DRAM, &h);
    last_ns = now;
    last_retaken = h.retaken_pages;
    if (now <= before_ns || !classify_window(&w, &number) ||
        work_of_window(figures_here(), &w, &work, &known) != 0)
        return false;
    policy_get(&v);
    struct idle_look look = {.idle = (double)h.idle_pages,
                             .retaken =
                                 (double)(h.retaken_pages - before) / (double)(now - before_ns),
                             .used = (double)(v.used[HY_DRAM] + v.used[HY_PM]) / HY_PAGE};
    return idle_is_cheap(&prices, figures_here(), &work, window_get(&w, WINDOW_elapsed_ns), &look);
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
    if (is_short)
        heap_set_dram(idle_is_kept() ? HEAP_DRAM_CHEAP : HEAP_DRAM_SHORT, free);
    else
        heap_set_dram(is_ample ? HEAP_DRAM_AMPLE : HEAP_DRAM_SCARCE, free);
}
