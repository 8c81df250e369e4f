/* SPDX-License-Identifier: BSD-2-Clause
 * The command by which a program runs on the emulated machine: what hybrid-emu starts,
 * and what the plugin starts when its guest calls execve.
 *
 * Variables that change how a program is loaded (LD_*, GLIBC_TUNABLES) are the guest's:
 * they go to it by QEMU's option -E and not into QEMU's own environment. */
#ifndef EMU_QEMU_COMMAND_H
#define EMU_QEMU_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "qemu/program.h"

struct command_tools {
    const char *qemu, *plugin, *guest_library; /* guest_library NULL: none */
};

struct command {
    const char *path; /* to be executed */
    char **argv, **envp;
};

enum command_error {
    COMMAND_OK = 0,
    COMMAND_AS_IT_IS = 1, /* not a program for QEMU: argv and envp are the caller's */
};

/* How `path` with argv and envp is run; everything lies in `room`. -E2BIG: too small;
 * -EINVAL: an LD_ variable or a file name with a comma, which QEMU's options cannot
 * carry; -ELOOP: scripts interpreted by scripts; else what program_look said.
 * *ret_program: what it is in the end. */
int command_make(const char *path, char *const argv[], char *const envp[],
                 const struct command_tools *tools, void *room, size_t bytes, struct command *ret,
                 struct program *ret_program);

#endif
