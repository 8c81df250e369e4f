/* SPDX-License-Identifier: BSD-2-Clause
 * The events of pmemu.h, and energy, from the counters of a process. Pure. */
#ifndef EMU_EVENTS_H
#define EMU_EVENTS_H

#include "machine/machine.h"
#include "pmemu.h"

struct emu_snapshot {
    uint64_t count[EMU_COUNTER_COUNT];
    int64_t virtual_ps;
    int64_t pages[EMU_TIERS];
};

void emu_snapshot(const struct emu_process *p, struct emu_snapshot *ret);
int64_t emu_event_value(const struct emu_snapshot *s, const struct emu_params *p,
                        const struct emu_costs *c, enum pmemu_event e);
/* Energy of a medium's accesses, moves of pages included. */
uint64_t emu_energy_uj(const uint64_t *count, const struct emu_params *p, enum emu_tier t);

#endif
