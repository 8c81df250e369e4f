/* SPDX-License-Identifier: BSD-2-Clause
 * The report of a process: text on stderr or one JSON line more in a file. */
#ifndef EMU_REPORT_H
#define EMU_REPORT_H

#include <stdint.h>

/* `where` as in HYBRID_EMU_STATS; `count` has EMU_COUNTER_COUNT entries. */
void emu_report(const char *where, const char *preset, const uint64_t *count, int64_t virtual_ps,
                uint64_t unseen);

#endif
