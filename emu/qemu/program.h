/* SPDX-License-Identifier: BSD-2-Clause
 * What kind of program a file is, and how it is run on the emulated machine. */
#ifndef EMU_QEMU_PROGRAM_H
#define EMU_QEMU_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum program_kind {
    PROGRAM_GUEST,        /* x86-64 ELF: under QEMU */
    PROGRAM_INSTRUMENTED, /* linked with libpmemu: as it is */
    PROGRAM_SCRIPT,       /* #!: what interprets it */
    PROGRAM_FOREIGN,      /* an ELF file of another machine or word size */
    PROGRAM_UNKNOWN,      /* not for us to run */
};

struct program {
    enum program_kind kind;
    bool is_static, set_id;
    char interpreter[PATH_MAX], argument[256]; /* of a script; argument "" if none */
};

/* 0 or -errno of looking at it: -ENOENT, -EACCES (not executable), -EISDIR. */
int program_look(const char *path, struct program *ret);

#endif
