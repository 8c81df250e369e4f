/* SPDX-License-Identifier: BSD-2-Clause
 * What the program does with mappings, for the page table: told by the front ends. */
#ifndef EMU_MAPPED_H
#define EMU_MAPPED_H

#include <stddef.h>
#include <stdint.h>

/* A new mapping; fd < 0: anonymous. Keeps errno. */
void emu_mapped(uint64_t address, size_t bytes, int fd);
/* About to be unmapped: told before, as another thread may get the address at once. */
void emu_unmapped(uint64_t address, size_t bytes);
void emu_remapped(uint64_t from, size_t old_bytes, uint64_t to, size_t bytes);
/* A successful madvise. */
void emu_advised(uint64_t address, size_t bytes, int advice);

#endif
