/* SPDX-License-Identifier: BSD-2-Clause
 * The CPUs of the machine, and where threads start that nobody on the machine has made. Known
 * from the settings before the process is on any machine. */
#ifndef EMU_START_MASK_H
#define EMU_START_MASK_H

#include "machine/cpus.h"

/* HYBRID_EMU_AFFINITY, or what the process has set before it came to the machine (libgomp does, in
 * its constructor). */
const struct emu_cpuset *emu_affinity_at_start(void);
void emu_affinity_start_with(const struct emu_cpuset *s);
int emu_cpu_count(void);

#endif
