/* SPDX-License-Identifier: BSD-2-Clause
 * Names for words of memory that processes share: a futex there is one for all of them, at
 * whatever address each has it. */
#ifndef EMU_QEMU_SHARED_H
#define EMU_QEMU_SHARED_H

#include <stddef.h>
#include <stdint.h>

/* A mapping with MAP_SHARED was made; fd < 0: anonymous, to be inherited by fork. */
void shared_mapped(uint64_t address, size_t bytes, int fd, uint64_t offset);
void shared_unmapped(uint64_t address, size_t bytes);
/* A key with EMU_SHARED_KEY; the address itself for memory of this process alone. */
uint64_t shared_key(uint64_t address);

#endif
