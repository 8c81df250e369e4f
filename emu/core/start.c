/* SPDX-License-Identifier: BSD-2-Clause
 * Start and end of a process. See start.h. */
#include "core/start.h"

#include <errno.h>
#include <string.h>

#include "core/core.h"
#include "core/pages.h"
#include "core/pmdir.h"
#include "core/report.h"
#include "core/settings.h"

static struct emu_settings settings;

void emu_start(void)
{
    struct emu_settings *s = &settings;
    int r;

    emu_settings_read(s);
    emu_pages_default(s->place);
    if (s->pm_dir && (r = emu_pmdir_set(s->pm_dir)) < 0)
        emu_refuse("HYBRID_EMU_PM_DIR=%s: %s", s->pm_dir, strerror(-r));
    r = emu_core_start(s->machine, &s->params);
    if (r == -EPERM)
        emu_refuse("HYBRID_EMU_MACHINE=%s: no machine of this version; remove the file",
                   s->machine);
    if (r == -EINVAL)
        emu_refuse("HYBRID_EMU_MACHINE=%s: a machine with other parameters", s->machine);
    if (r < 0)
        emu_refuse("no emulated machine%s%s: %s", s->machine ? ": " : "",
                   s->machine ? s->machine : "",
                   r == -EUSERS ? "too many processes" : strerror(-r));
}

void emu_finish(void)
{
    uint64_t count[EMU_COUNTER_COUNT], unseen;
    int64_t virtual_ps;

    if (!emu_core_running())
        return;
    emu_core_stop(count, &virtual_ps, &unseen);
    if (settings.stats)
        emu_report(settings.stats, settings.preset, count, virtual_ps, unseen);
}
