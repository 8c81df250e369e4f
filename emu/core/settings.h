/* SPDX-License-Identifier: BSD-2-Clause
 * Settings of the emulated machine. All environment variables are read here:
 *   HYBRID_EMU_PRESET   optane, cxl, stt-ram, pram (default), remote-numa, custom
 *   HYBRID_EMU_SET      name=number,... on top of the preset
 *   HYBRID_EMU_PLACE    dram (default) or pm: the medium of pages that nothing else names
 *   HYBRID_EMU_PM_DIR   mappings of files below are PM
 *   HYBRID_EMU_MACHINE  file of a machine that several processes share
 *   HYBRID_EMU_STATS    1: report at exit on stderr; a file name: one JSON line more
 * Wrong values end the program with status 78 before main: a measurement on another
 * machine than the one asked for is worth nothing. */
#ifndef EMU_SETTINGS_H
#define EMU_SETTINGS_H

#include "model/params.h"

struct emu_settings {
    const char *preset, *machine, *pm_dir, *stats; /* NULL: not set; preset never */
    struct emu_params params;
    enum emu_tier place;
};

/* Does not return when one is wrong. */
void emu_settings_read(struct emu_settings *ret);
/* One line on stderr, then exit status 78. */
void emu_refuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
