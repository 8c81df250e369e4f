/* SPDX-License-Identifier: BSD-2-Clause
 * Start, settings and end of libpmemu. All environment variables are read here:
 *   HYBRID_EMU_PRESET   optane, cxl, stt-ram, pram (default), remote-numa, custom
 *   HYBRID_EMU_SET      name=number,... on top of the preset
 *   HYBRID_EMU_PLACE    dram (default) or pm: the medium of pages that nothing else names
 *   HYBRID_EMU_PM_DIR   mappings of files below are PM
 *   HYBRID_EMU_MACHINE  file of a machine that several processes share
 *   HYBRID_EMU_STATS    1: report at exit on stderr; a file name: one JSON line more
 * Wrong values end the program with status 78 before main: a measurement on another
 * machine than the one asked for is worth nothing. */
#ifndef EMU_CONFIG_H
#define EMU_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/* Is this open file below HYBRID_EMU_PM_DIR? Keeps errno. */
bool emu_is_pm_file(int fd);
/* Write the report of a process; `where` as in HYBRID_EMU_STATS. */
void emu_report(const char *where, const char *preset, const uint64_t *count, int64_t virtual_ps,
                uint64_t unseen);

#endif
