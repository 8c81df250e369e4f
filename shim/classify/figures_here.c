/* SPDX-License-Identifier: BSD-2-Clause
 * The figures that hold for this process; see figures.h. */
#include <string.h>

#include "classify/figures.h"
#include "core/state.h"
#include "settings/settings.h"
#include "sys/log.h"

static struct figures_found found;
static bool done;

static void tell_user(void *ctx, const char *message)
{
    static const char named[] = "HYBRID_MACHINE=";
    (void)ctx;
    if (!hy_config.told_bad[OPT_MACHINE] || strncmp(message, named, sizeof(named) - 1) != 0)
        settings_warn(message);
}

const struct machine_figures *figures_here(void)
{
    if (!done) {
        const struct figures_query query = {
            .sys = "/sys",
            .etc = "/etc",
            .topo = &hy_machine.topo,
            .backend = hy_machine.backend,
            .dram_mask = hy_machine.dram_mask,
            .pm_mask = hy_machine.pm_mask,
        };
        figures_find(hy_config.set.machine, &query, &found, tell_user, NULL);
        log_info("figures of the machine: %s", found.said);
        __atomic_store_n(&done, true, __ATOMIC_RELEASE);
    }
    return &found.figures;
}

const char *figures_here_said(void)
{
    return __atomic_load_n(&done, __ATOMIC_ACQUIRE) ? found.said : "";
}
