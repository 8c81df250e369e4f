/* SPDX-License-Identifier: BSD-2-Clause
 * Pages in use on each medium, by process, and whether there is room for more. DRAM may
 * be limited (params.dram_bytes): the limit is the machine's. A process' count lies in
 * its slot and vanishes with it. */
#ifndef EMU_ROOM_H
#define EMU_ROOM_H

#include "machine/machine.h"

#define EMU_ROOM_PAGE 4096

/* Count one more page; false: the medium is full, nothing was counted. */
bool emu_room_take(struct emu_machine *m, struct emu_process *self, enum emu_tier t);
void emu_room_give(struct emu_process *self, enum emu_tier t);
/* In use by all processes. */
int64_t emu_room_used(struct emu_machine *m, enum emu_tier t);
/* Bytes of whole pages of DRAM that are left; INT64_MAX: no limit. */
int64_t emu_room_free(struct emu_machine *m);

#endif
