/* SPDX-License-Identifier: BSD-2-Clause
 * hybrid-emu: what its subcommands share. An ordinary program: stdio and malloc. */
#ifndef EMU_TOOL_H
#define EMU_TOOL_H

#include <stdint.h>
#include <stdio.h>

/* Exit statuses of hybrid-emu itself; those of `run` follow env(1) and the shell. A setting
 * that is wrong ends it with 78, as it ends an emulated program. */
enum {
    TOOL_OK = 0,
    TOOL_NONE = 1,         /* show: no such machine */
    TOOL_USAGE = 2,        /* wrong option or subcommand */
    TOOL_FAILED = 125,     /* run: hybrid-emu cannot do it (no QEMU, no plugin) */
    TOOL_CANNOT_RUN = 126, /* run: not a program for the emulated machine */
    TOOL_NOT_FOUND = 127,
};

int tool_run(int argc, char **argv);
int tool_presets(int argc, char **argv);
int tool_settings(int argc, char **argv);
int tool_show(int argc, char **argv);

/* One line on stderr: "hybrid-emu: ...". */
void tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A subcommand that takes no options got `argv`: 0 if there are at most `most` arguments. */
int tool_arguments(int argc, char **argv, int most);

#endif
