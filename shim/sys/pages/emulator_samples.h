/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses from the emulated machine (emu/pmemu.h), as precise hardware samples
 * would tell them: lines read from a medium, and lines that turned dirty. The machine has one
 * ring; each reader here sees all of it, by a place of its own. One thread for each reader. */
#ifndef HYBRID_SYS_PAGES_EMULATOR_SAMPLES_H
#define HYBRID_SYS_PAGES_EMULATOR_SAMPLES_H

#include "base/types.h"

/* One line in `period` becomes a sample, in a ring of at most `bytes`; who opens first
 * decides on both. -ENODEV: no machine; -EBUSY: the program samples itself. */
int emulator_samples_open(uint64_t period, size_t bytes);
void emulator_samples_close(void);
/* Calls fn for those that came since, at most a ring full; how many. */
unsigned emulator_samples_drain(void (*fn)(uintptr_t address, bool store));

/* The second reader, which also hears whether a line was read from memory, dirtied, or both:
 * both is one of two events, each of which is sampled. */
int emulator_tap_open(uint64_t period, size_t bytes);
void emulator_tap_close(void);
unsigned emulator_tap_drain(void (*fn)(uintptr_t address, bool read, bool dirtied));
/* Of the ring; 0: none is open. */
uint64_t emulator_tap_period(void);
/* Samples that the tap should have seen, since it was opened, but for a full ring. */
uint64_t emulator_tap_lost(void);

#endif
