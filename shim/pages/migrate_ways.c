/* SPDX-License-Identifier: BSD-2-Clause */
#include "pages/migrate_ways.h"

#include "core/state.h"
#include "pages/sampler.h"
#include "settings/settings.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "sys/usage.h"

const char *ways_against(void)
{
    const struct hy_settings *s = &hy_config.set;
    if (s->migrate == HY_MIGRATE_OFF)
        return "HYBRID_MIGRATE=off";
    if (s->policy == HY_POLICY_PM)
        return "HYBRID_POLICY=pm";
    if (s->dram_allocator == HY_DRAM_NEXT)
        return "HYBRID_DRAM_ALLOCATOR=next";
    if (hy_machine.backend == HY_PM_FILE)
        return "pages of files cannot be moved while they are in use";
    /* Memory that is only called PM: moves in the books, if somebody wants to see them. */
    bool two = hy_machine.backend == HY_PM_NODE ? hy_machine.pm_mask != hy_machine.dram_mask
                                                : emulator_open();
    if (!two && s->migrate == HY_MIGRATE_AUTO)
        return "both tiers are the same memory";
    return NULL;
}

struct migrator ways_here(void)
{
    if (hy_machine.backend != HY_PM_NODE)
        return (struct migrator){.way = MIGRATE_EMULATED};
    return (struct migrator){
        .way = MIGRATE_NUMA,
        .nodes = {[HY_DRAM] = hy_machine.dram_mask, [HY_PM] = hy_machine.pm_mask}};
}

int ways_open_sampler(void)
{
    /* On the emulated machine the kernel would see what that machine does. */
    static const struct sampler_source *const emulated[] = {&sampler_emulated, &sampler_scan,
                                                            &sampler_soft_dirty, NULL};
    static const struct sampler_source *const real[] = {&sampler_scan, &sampler_soft_dirty,
                                                        &sampler_loads, &sampler_idle, NULL};
    const struct sampler_source *const *sources = emulator_open() ? emulated : real;
    struct predictor p = predictor_of(PREDICT_WINDOW);
    return sampler_open(sources, &p, (uint64_t)os_pid() * 2654435761u + os_now_ns());
}

bool ways_filtered(void)
{
    return os_seccomp() != 0;
}
