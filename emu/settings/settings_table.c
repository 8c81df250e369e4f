/* SPDX-License-Identifier: BSD-2-Clause
 * The table of settings as data. See settings.h. */
#include "settings/settings.h"

static const struct emu_setting_info table[] = {
#define EMU_SETTING(id, dflt, allowed, help) {"HYBRID_EMU_" #id, dflt, allowed, help},
#include "settings/settings.def"
#undef EMU_SETTING
};

const struct emu_setting_info *emu_setting_info(enum emu_setting s)
{
    return &table[s];
}
