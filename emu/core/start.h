/* SPDX-License-Identifier: BSD-2-Clause
 * A process comes to the emulated machine and leaves it: the same for every front end. */
#ifndef EMU_START_H
#define EMU_START_H

/* Reads the settings, joins the machine, adopts the calling thread. Ends the process with
 * status 78 and a line when that cannot be. */
void emu_start(void);
/* Leaves and writes the report. Once; later calls and children that are not on the
 * machine do nothing. */
void emu_finish(void);

#endif
