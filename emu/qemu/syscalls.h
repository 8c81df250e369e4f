/* SPDX-License-Identifier: BSD-2-Clause
 * The guest's system calls, before and after. */
#ifndef EMU_QEMU_SYSCALLS_H
#define EMU_QEMU_SYSCALLS_H

#include <stdint.h>

void syscalls_enter(int64_t number, const uint64_t arg[6]);
void syscalls_leave(int64_t number, int64_t result);

#endif
