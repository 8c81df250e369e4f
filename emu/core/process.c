/* SPDX-License-Identifier: BSD-2-Clause
 * A process on the machine: its coming, forking and leaving. See core.h. */
#include "core/inside.h"

#include <string.h>
#include <unistd.h>

#include "settings/start_mask.h"
#include "pages/pages.h"
#include "pages/watch.h"

#define SALT_SHIFT 42

struct emu_core emu_core;

struct emu_machine *emu_core_machine(void)
{
    return atomic_load(&emu_core.running) ? emu_core.machine : NULL;
}

struct emu_process *emu_core_process(void)
{
    return atomic_load(&emu_core.running) ? emu_core.process : NULL;
}

const char *emu_core_machine_path(void)
{
    return emu_core.machine_path;
}

const struct emu_costs *emu_core_costs(void)
{
    return &emu_core.costs;
}

void emu_count(enum emu_counter c, uint64_t v)
{
    if (atomic_load(&emu_core.running))
        emu_add(c, v);
}

bool emu_core_has(const void *address)
{
    return (uintptr_t)address - (uintptr_t)emu_core.machine < emu_core.machine->bytes;
}

bool emu_core_running(void)
{
    return atomic_load(&emu_core.running);
}

const struct emu_params *emu_core_params(void)
{
    return &emu_core.params;
}

static void choose_salt(void)
{
    emu_core.salt = (atomic_load(&emu_core.process->serial) & 0xffff) << SALT_SHIFT;
}

/* The process has a slot. */
static void run(void)
{
    choose_salt();
    emu_core.unseen_before = atomic_load(&emu_core.machine->clock.unseen);
    emu_core.lost_before = atomic_load(&emu_core.machine->clock.lost_runs);
    atomic_store(&emu_core.running, true);
    emu_self.mode = EMU_T_NEW;
    emu_adopt(&emu_self);
}

int emu_core_start(const char *path, const struct emu_params *p, unsigned mhz)
{
    int r = emu_machine_attach(path, p, &emu_core.machine, &emu_core.process);
    if (r < 0)
        return r;
    emu_core.machine_path = path;
    emu_core.params = *p;
    emu_params_clock(&emu_core.params, mhz);
    emu_core.core_mw = emu_core_mw(p, mhz);
    emu_costs_init(&emu_core.costs, &emu_core.params);
    emu_core.llc.set_mask = emu_llc_sets((uint32_t)p->llc_kb) - 1;
    emu_core.llc.slot = emu_core.machine->llc;
    emu_access_step = EMU_FIX(emu_core.params.access_ps) - 1;
    emu_block_step = EMU_FIX(emu_core.params.block_ps);
    run();
    return 0;
}

void emu_core_fill_ways(unsigned ways)
{
    atomic_store(&emu_core.llc.first_way, EMU_LLC_WAYS - ways);
}

void emu_core_compute(int64_t milli)
{
    emu_access_step = EMU_FIX((emu_core.params.access_ps * milli + 50000) / 100000) - 1;
    emu_block_step = EMU_FIX((emu_core.params.block_ps * milli + 50000) / 100000);
}

void emu_core_forked(void)
{
    emu_clock_rush_forked();
    if (!atomic_load(&emu_core.running))
        return;
    /* The slots are the parent's. Without one of its own the child runs uncounted. */
    if (emu_machine_join(emu_core.machine, &emu_core.process) < 0) {
        atomic_store(&emu_core.running, false);
        emu_switch_off(&emu_self);
        return;
    }
    choose_salt();
    emu_core.unseen_before = atomic_load(&emu_core.machine->clock.unseen);
    emu_core.lost_before = atomic_load(&emu_core.machine->clock.lost_runs);
    emu_self.observes = 0;
    emu_pages_forked();
    emu_watch_forked();
    if (emu_self.mode == EMU_T_LIVE) {
        struct emu_cpuset allowed;
        int64_t now = emu_self.now;
        int slot;
        emu_cpus_allowed(&emu_core.machine->cpu_user[emu_self.slot], &allowed);
        if (emu_take_slot(now, &allowed, &slot) < 0) {
            emu_switch_off(&emu_self);
            return;
        }
        atomic_store(&emu_core.process->begin, now);
        emu_go_live(&emu_self, slot, now);
    }
}

bool emu_core_ours(void)
{
    return atomic_load(&emu_core.running) &&
           atomic_load(&emu_core.process->pid) == (int32_t)getpid();
}

void emu_core_stop(struct emu_result *ret)
{
    emu_settle();
    atomic_store(&emu_core.running, false);
    emu_switch_off(&emu_self);
    for (int c = 0; c < EMU_COUNTER_COUNT; c++)
        ret->count[c] = atomic_load(&emu_core.process->count[c]);
    ret->virtual_ps = atomic_load(&emu_core.process->end) - atomic_load(&emu_core.process->begin);
    ret->unseen_blocks = atomic_load(&emu_core.machine->clock.unseen) - emu_core.unseen_before;
    ret->lost_runs = atomic_load(&emu_core.machine->clock.lost_runs) - emu_core.lost_before;
    emu_machine_leave(emu_core.machine, emu_core.process, emu_core.machine_path);
}

int emu_core_restart(void)
{
    /* A machine of its own is still there. */
    int r = emu_core.machine_path ? emu_machine_attach(emu_core.machine_path, &emu_core.params,
                                                       &emu_core.machine, &emu_core.process)
                                  : emu_machine_join(emu_core.machine, &emu_core.process);
    if (r < 0)
        return r;
    emu_core.llc.slot = emu_core.machine->llc;
    run();
    return 0;
}
