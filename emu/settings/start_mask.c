/* SPDX-License-Identifier: BSD-2-Clause
 * See start_mask.h. */
#include "settings/start_mask.h"

#include "settings/settings.h"

static struct emu_cpuset start_mask;
static int count;

/* From the settings, when somebody first asks: maybe before every constructor. Wrong
 * ones are refused at the start. */
static void look_up(void)
{
    if (count == 0 && emu_settings_cpus(&count, &start_mask) < 0)
        emu_cpuset_fill(&start_mask, count = 1);
}

const struct emu_cpuset *emu_affinity_at_start(void)
{
    look_up();
    return &start_mask;
}

void emu_affinity_start_with(const struct emu_cpuset *s)
{
    start_mask = *s;
}

int emu_cpu_count(void)
{
    look_up();
    return count;
}
