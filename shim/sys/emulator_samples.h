/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses from the emulated machine (emu/pmemu.h), as precise hardware samples
 * would tell them: lines read from a medium, and lines that turned dirty. One reader. */
#ifndef HYBRID_SYS_EMULATOR_SAMPLES_H
#define HYBRID_SYS_EMULATOR_SAMPLES_H

#include "base/types.h"

/* One line in `period` becomes a sample, in a ring of at most `bytes`. -ENODEV: no machine;
 * -EBUSY: the program or somebody else samples. */
int emulator_samples_open(uint64_t period, size_t bytes);
void emulator_samples_close(void);
/* Calls fn for those that came since, at most a ring full; how many. */
unsigned emulator_samples_drain(void (*fn)(uintptr_t address, bool store));

#endif
