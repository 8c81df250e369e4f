/* SPDX-License-Identifier: BSD-2-Clause
 * Samples of accesses into a ring (pmemu.h). Many writers, no lock: a claimed slot is
 * complete when its number says so. */
#ifndef EMU_SAMPLES_H
#define EMU_SAMPLES_H

#include <stddef.h>

#include "pmemu.h"

/* `memory` is page-aligned and zero, takes at least so many samples, and stays. -EBUSY,
 * -EINVAL. */
#define EMU_SAMPLES_MIN 64u
int emu_samples_open(unsigned events, uint64_t period, void *memory, size_t bytes);
void emu_samples_close(void);

#endif
