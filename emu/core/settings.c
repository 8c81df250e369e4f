/* SPDX-License-Identifier: BSD-2-Clause
 * Settings from the environment. See settings.h. */
#include "core/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void emu_refuse(const char *format, ...)
{
    char line[512];
    int n;
    __builtin_va_list ap;

    __builtin_va_start(ap, format);
    n = vsnprintf(line, sizeof(line) - 1, format, ap);
    __builtin_va_end(ap);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n] = '\n';
    dprintf(STDERR_FILENO, "pmemu[%d]: %.*s", (int)getpid(), n + 1, line);
    _exit(78);
}

static const char *setting(const char *name)
{
    const char *v = secure_getenv(name);
    return v && *v ? v : NULL;
}

static void read_params(struct emu_settings *s)
{
    const char *set = setting("HYBRID_EMU_SET"), *bad;

    s->preset = setting("HYBRID_EMU_PRESET");
    if (!s->preset)
        s->preset = "pram";
    if (emu_params_preset(s->preset, &s->params) < 0) {
        char names[128] = "";
        for (size_t i = 0, n = 0; i < emu_preset_count(); i++)
            n += (size_t)snprintf(names + n, sizeof(names) - n, " %s", emu_preset_name(i));
        emu_refuse("HYBRID_EMU_PRESET=%s: no such machine; there are:%s", s->preset, names);
    }
    if (set && emu_params_set(&s->params, set, &bad) < 0)
        emu_refuse("HYBRID_EMU_SET: not a setting within its limits: %.60s", bad);
}

void emu_settings_read(struct emu_settings *ret)
{
    const char *place = setting("HYBRID_EMU_PLACE");

    read_params(ret);
    ret->place = place && strcmp(place, "pm") == 0 ? EMU_PM : EMU_DRAM;
    if (place && ret->place == EMU_DRAM && strcmp(place, "dram") != 0)
        emu_refuse("HYBRID_EMU_PLACE=%s: dram or pm", place);
    ret->machine = setting("HYBRID_EMU_MACHINE");
    ret->pm_dir = setting("HYBRID_EMU_PM_DIR");
    ret->stats = setting("HYBRID_EMU_STATS");
}
