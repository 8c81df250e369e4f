/* SPDX-License-Identifier: BSD-2-Clause
 * Which medium a page of this process is on. A two-level table of bytes over 48 bits
 * of address; a page that was never named is on the default medium. Lookup takes no
 * lock; changes are stores of bytes, a racing reader sees the old or the new one. */
#ifndef EMU_PAGES_H
#define EMU_PAGES_H

#include <stddef.h>

#include "model/cache.h"

#define EMU_PAGE_SHIFT 12

/* What every page is on that is not set; before the first lookup. */
void emu_pages_default(enum emu_tier t);
enum emu_tier emu_tier_of(uint64_t address);
/* 0, -EINVAL for a range outside 48 bits, -ENOMEM. Pages touched by the range, wholly. */
int emu_pages_set(uint64_t address, size_t bytes, enum emu_tier t);
/* Back to the default. */
void emu_pages_clear(uint64_t address, size_t bytes);
/* What page `from` was set to goes for a range: mremap. */
void emu_pages_move(uint64_t from, size_t old_bytes, uint64_t to, size_t bytes);

#endif
