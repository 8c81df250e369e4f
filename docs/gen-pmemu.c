/* SPDX-License-Identifier: BSD-2-Clause
 * Writes pmemu.7 from its template, the table of settings, the presets and the counters.
 * gen-pmemu TEMPLATE VERSION > PAGE */
#include <stdio.h>

#include "settings/settings.h"
#include "machine/machine.h"
#include "roff.h"

static void put_settings(void)
{
    for (int i = 0; i < EMU_SETTING_COUNT; i++) {
        const struct emu_setting_info *s = emu_setting_info((enum emu_setting)i);
        printf(".TP\n\\fB%s\\fR=", s->env);
        roff_allowed(s->allowed);
        roff_text(s->help);
        if (*s->dflt) {
            printf("\n.br\nDefault: \\fB");
            roff_text(s->dflt);
            printf("\\fR.");
        }
        putchar('\n');
    }
}

static void put_presets(void)
{
    for (size_t i = 0; i < emu_preset_count(); i++) {
        printf(".TP\n\\fB");
        roff_text(emu_preset_name(i));
        printf("\\fR\n");
        roff_text(emu_preset_help(i));
        printf(".\n");
    }
}

static void put_counters(void)
{
    static const char *const counters[][2] = {
#define EMU_X(name, help) {#name, help},
        EMU_COUNTERS(EMU_X)
#undef EMU_X
    };

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        printf(".TP\n.B %s\n%s\n", counters[i][0],
               counters[i][1][0] ? counters[i][1] : "the same for the other, or as the name says");
}

int main(int argc, char **argv)
{
    static const struct roff_part parts[] = {
        {"@SETTINGS@", put_settings}, {"@PRESETS@", put_presets}, {"@COUNTERS@", put_counters}};
    return roff_fill(argc, argv, "gen-pmemu", parts, 3);
}
