/* SPDX-License-Identifier: BSD-2-Clause
 * Lines read and dirtied, by page of this process' addresses, while it is switched on. A
 * page keeps its counts when it is unmapped or moved. */
#ifndef EMU_PAGE_COUNTS_H
#define EMU_PAGE_COUNTS_H

#include <stddef.h>

#include "model/cache.h"
#include "pmemu.h"

/* Once; -ENOMEM. */
int emu_page_counts_start(void);
/* `lines` written to PM by a move. */
void emu_page_count_wear(uint64_t address, uint32_t lines);
/* -ENODATA: not switched on; -EINVAL. */
int emu_page_counts_get(uint64_t address, size_t bytes, struct pmemu_range_counts *ret);

#endif
