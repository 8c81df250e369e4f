/* SPDX-License-Identifier: BSD-2-Clause
 * Start and end of a process. See start.h. */
#include "program/start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"
#include "pages/page_counts.h"
#include "pages/pmdir.h"
#include "program/report.h"
#include "program/residence.h"
#include "settings/settings.h"

static struct emu_settings settings;

void emu_start(bool see_unmapped)
{
    struct emu_settings *s = &settings;
    int r;

    emu_settings_read(s);
    if (s->stats && strcmp(s->stats, "1") == 0)
        emu_report_keep_stderr();
    emu_residence_start(s->place, see_unmapped);
    if (s->pm_dir && (r = emu_pmdir_set(s->pm_dir)) < 0)
        emu_refuse("HYBRID_EMU_PM_DIR=%s: %s", s->pm_dir, strerror(-r));
    if (s->page_counts && (r = emu_page_counts_start()) < 0)
        emu_refuse("HYBRID_EMU_PAGE_COUNTS=1: %s", strerror(-r));
    emu_core_fill_ways(s->ways);
    r = emu_core_start(s->machine, &s->params, s->mhz);
    if (r == -EPERM)
        emu_refuse("HYBRID_EMU_MACHINE=%s: no machine of this version, or damaged; remove the file",
                   s->machine);
    if (r == -EINVAL)
        emu_refuse("HYBRID_EMU_MACHINE=%s: a machine with other parameters", s->machine);
    if (r < 0)
        emu_refuse("no emulated machine%s%s: %s", s->machine ? ": " : "",
                   s->machine ? s->machine : "",
                   r == -EUSERS ? "too many processes" : strerror(-r));
}

static bool finish(const char *how)
{
    struct emu_result r;

    if (!emu_core_ours())
        return false;
    emu_core_stop(&r);
    if (settings.stats)
        emu_report(settings.stats, settings.preset, how, &r);
    return true;
}

void emu_finish(void)
{
    (void)finish("exit");
}

bool emu_exec_begins(void)
{
    int e = errno;
    bool left = finish("exec");
    errno = e;
    return left;
}

void emu_exec_failed(void)
{
    int e = errno, r = emu_core_restart();
    if (r < 0)
        dprintf(STDERR_FILENO, "pmemu[%d]: not emulated any more: %s\n", (int)getpid(),
                strerror(-r));
    errno = e;
}
