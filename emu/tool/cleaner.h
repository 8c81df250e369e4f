/* SPDX-License-Identifier: BSD-2-Clause
 * The temporary machine of a run is removed by the last process that leaves it. A killed one
 * cannot: a small process waits for the end of the run and removes what is left. */
#ifndef EMU_CLEANER_H
#define EMU_CLEANER_H

/* For the calling process, which will execute the program. 0 or -errno. */
int cleaner_start(const char *machine);

#endif
