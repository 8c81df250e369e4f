/* SPDX-License-Identifier: BSD-2-Clause
 * Settings of the emulated machine: environment variables HYBRID_EMU_*, listed in
 * settings.def and read here only.
 *
 * Wrong values and unknown names end the program with status 78 before main: a
 * measurement on another machine than the one asked for is worth nothing. */
#ifndef EMU_SETTINGS_H
#define EMU_SETTINGS_H

#include <stddef.h>

#include "pages/pages.h"
#include "machine/cpus.h"
#include "model/params.h"

enum emu_setting {
#define EMU_SETTING(id, dflt, allowed, help) EMU_S_##id,
#include "settings/settings.def"
#undef EMU_SETTING
    EMU_SETTING_COUNT
};

struct emu_setting_info {
    const char *env, *dflt, *allowed, *help;
};

struct emu_settings {
    const char *preset, *machine, *pm_dir, *stats; /* NULL: not set; preset never */
    struct emu_params params;
    struct emu_place place;
    bool page_counts;
    unsigned ways, mhz;
};

/* Pure, in settings_table.c: also for programs that only tell of the settings. */
const struct emu_setting_info *emu_setting_info(enum emu_setting s);

/* Does not return when one is wrong. */
void emu_settings_read(struct emu_settings *ret);
/* The CPUs of the machine and where the program starts. -EINVAL. */
int emu_settings_cpus(int *ret_count, struct emu_cpuset *ret_start);
/* The value of one: never NULL, the default when it is not set or empty. */
const char *emu_setting(enum emu_setting s);
/* Which of the allowed words it is; does not return when none. */
int emu_setting_choice(enum emu_setting s);
/* "not an allowed value" with what is allowed; does not return. */
void emu_setting_refuse(enum emu_setting s) __attribute__((noreturn));
/* One line on stderr, then exit status 78. */
void emu_refuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
