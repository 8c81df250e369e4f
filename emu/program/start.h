/* SPDX-License-Identifier: BSD-2-Clause
 * A process comes to the emulated machine and leaves it: the same for every front end. */
#ifndef EMU_START_H
#define EMU_START_H

#include <stdbool.h>

/* Reads the settings, joins the machine, adopts the calling thread. Ends the process with
 * status 78 and a line when that cannot be. `see_unmapped`: residence.h. */
void emu_start(bool see_unmapped);
/* Leaves and writes the report. Once; later calls and children that are not on the
 * machine do nothing. */
void emu_finish(void);
/* Around exec: the process leaves with a report, as nothing of it may come back, and
 * comes back if the exec fails. */
bool emu_exec_begins(void);
void emu_exec_failed(void);

#endif
