/* SPDX-License-Identifier: BSD-2-Clause
 * hybrid-emu: runs programs on the emulated machine. This file has the table of
 * subcommands and their help. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "config.h"
#include "tool/tool.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary, *usage, *text;
} commands[] = {
    {"run", tool_run, "run a program on the emulated machine",
     "run [OPTION]... [--] PROGRAM [ARGUMENT]...",
     "An unmodified x86-64 program runs under QEMU's user mode, one that is linked with\n"
     "libpmemu as it is. What it starts is emulated, too. Exit status and signals are the\n"
     "program's own. What counts is virtual time: --stats tells it, and the program's own\n"
     "clocks show it.\n"
     "\n"
     "  --NAME VALUE      any setting (`hybrid-emu settings`): --preset optane, --place pm,\n"
     "                    --cpus 8, --set pm_read_ns=400, --pm-dir DIR, --machine FILE\n"
     "  --stats[=FILE]    report at the end: on standard error, or a line of JSON in FILE\n"
     "  --preload LIB     LD_PRELOAD for the program (before one in the environment);\n"
     "                    may be given more than once\n"
     "  --qemu FILE       another qemu-x86_64 than that of the PATH\n"
     "\n"
     "Programs with the same --machine FILE share one machine; without it each run has its\n"
     "own. OMP_WAIT_POLICY is passive unless set: who spins costs real time.\n"
     "\n"
     "Status 2: a wrong option; 78: a wrong setting; 125: no QEMU or no plugin; 126: the\n"
     "program cannot be emulated; 127: no such program.\n"},
    {"presets", tool_presets, "the machines and their numbers", "presets",
     "Each preset's latency, bandwidth, block, energy and endurance for DRAM and PM.\n"
     "Any number can be changed with `--set`.\n"},
    {"settings", tool_settings, "the settings, their values and meaning", "settings [NAME]",
     "All HYBRID_EMU_ variables, and the options of `run`, which have the same names.\n"},
    {"show", tool_show, "who is on a machine now, and what they have counted", "show FILE",
     "FILE is what was given as --machine.\n"
     "\n"
     "Status 1: there is no such machine.\n"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

void tool_error(const char *format, ...)
{
    va_list ap;

    fputs("hybrid-emu: ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int tool_arguments(int argc, char **argv, int most)
{
    if (argc > 1 && argv[1][0] == '-') {
        tool_error("%s has no option %s", argv[0], argv[1]);
        return TOOL_USAGE;
    }
    if (argc - 1 > most) {
        tool_error("%s: what is '%s' for?", argv[0], argv[most + 1]);
        return TOOL_USAGE;
    }
    return TOOL_OK;
}

static void command_help(const struct command *c, FILE *to)
{
    fprintf(to, "Usage: hybrid-emu %s\n\n%s", c->usage, c->text);
}

static void help(FILE *to)
{
    fputs("Usage: hybrid-emu COMMAND [ARGUMENT]...\n"
          "A machine with DRAM and persistent memory (PM), in software.\n\n",
          to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("  help       help on a command\n\n"
          "  --version  print the version\n"
          "  --help     print this\n",
          to);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    tool_error("there is no command '%s'; see hybrid-emu --help", name);
    return NULL;
}

/* Output that could not be written (a full disk) is an error, not a success. */
static int finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tool_error("cannot write to standard output");
        return status == TOOL_OK ? TOOL_FAILED : status;
    }
    return status;
}

int main(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2) {
        help(stderr);
        return TOOL_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("hybrid-emu " HY_VERSION);
        return finish(TOOL_OK);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        help(stdout);
        return finish(TOOL_OK);
    }
    c = find(strcmp(argv[1], "help") == 0 ? argv[2] : argv[1]);
    if (!c)
        return TOOL_USAGE;
    if (strcmp(argv[1], "help") == 0 ||
        (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))) {
        command_help(c, stdout);
        return finish(TOOL_OK);
    }
    return finish(c->run(argc - 1, argv + 1));
}
