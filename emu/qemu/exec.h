/* SPDX-License-Identifier: BSD-2-Clause
 * What a guest executes is emulated, too: QEMU would run it as a program of the host. */
#ifndef EMU_QEMU_EXEC_H
#define EMU_QEMU_EXEC_H

#include <stdint.h>

/* The plugin's arguments: guest=FILE, the library that is preloaded into guests. */
void exec_options(int argc, char **argv);
/* When the guest is loaded: its absolute path, for /proc/self/exe. */
void exec_loaded(void);
/* The guest calls execve. Does not return if it can be done here. */
void exec_enter(uint64_t path, uint64_t argv, uint64_t envp);

#endif
