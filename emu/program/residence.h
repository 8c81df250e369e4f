/* SPDX-License-Identifier: BSD-2-Clause
 * Ties the page table to the machine: room on the media, lines that leave the caches, and
 * what to do when DRAM is full. */
#ifndef EMU_RESIDENCE_H
#define EMU_RESIDENCE_H

#include "pages/pages.h"

/* Before the first access. `see_unmapped`: look into the kernel's page table for pages that
 * were unmapped behind our back (libc's allocator does so) before DRAM counts as full;
 * only where emulated addresses are this process'. */
void emu_residence_start(struct emu_place place, bool see_unmapped);

/* Bytes of DRAM that are nobody's; INT64_MAX: no limit. */
int64_t emu_residence_dram_free(void);

#endif
