/* SPDX-License-Identifier: BSD-2-Clause
 * The report of a process: text on stderr or one JSON line more in a file. */
#ifndef EMU_REPORT_H
#define EMU_REPORT_H

#include "core/core.h"

/* Why the virtual time of a run may be wrong, in words; NULL: it is right. Threads that
 * nobody could follow, and bandwidth that the calendar had no room for; a loaded
 * computer is no reason. */
const char *emu_invalid(const struct emu_result *r, char *buf, size_t bytes);
/* `where` as in HYBRID_EMU_STATS; `end`: how the process has ended, "exit" or "exec". */
/* The user's standard error, for a program that closes it before its end (sort, echo). */
void emu_report_keep_stderr(void);
void emu_report(const char *where, const char *preset, const char *end, const struct emu_result *r);

#endif
