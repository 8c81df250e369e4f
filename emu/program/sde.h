/* SPDX-License-Identifier: BSD-2-Clause
 * The events of pmemu.h as PAPI's software-defined events. Uses nothing but pmemu.h, so that
 * every front end, and a library in a guest, can do it. */
#ifndef EMU_SDE_H
#define EMU_SDE_H

/* Once; not from malloc. PAPI looks for libsde among the global symbols, so the library is
 * opened for it (RTLD_GLOBAL; 0.2 ms) if the program has not brought it. -ENOENT: it is not
 * installed; -EAGAIN: another thread is about it. Also pmemu_offer_events of pmemu.h. */
int emu_sde_register(void);

#endif
