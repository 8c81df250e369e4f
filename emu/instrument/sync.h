/* SPDX-License-Identifier: BSD-2-Clause
 * Virtual time across synchronisation: the interposed functions of libpthread and
 * libgomp. */
#ifndef EMU_SYNC_H
#define EMU_SYNC_H

/* Find the real functions and make the key by which threads are seen to end. */
void emu_sync_start(void);

#endif
