/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl: runs programs under libhybrid.so and tells what happens. This file
 * has the table of subcommands and their help. */
#include "ctl.h"

#include <string.h>

#include "config.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
    const char *usage;
    const char *text;
} commands[] = {
    {"run", ctl_run, "run a program with its memory on two tiers",
     "run [OPTION]... [--] PROGRAM [ARGUMENT]...",
     "Checks the settings and the program, puts libhybrid.so in front of LD_PRELOAD and\n"
     "becomes PROGRAM: exit status and signals are the program's own.\n"
     "\n"
     "  --NAME=VALUE        any option of the table (`hybridctl options`), for example\n"
     "                      --policy pm, --dram 8G, --pm emulated, --stats[=FILE]\n"
     "  --set NAME=VALUE    the same, with the name as in a profile or the environment\n"
     "  --library FILE      this libhybrid.so (also: HYBRIDCTL_LIBRARY)\n"
     "  --check             check and explain only, start nothing\n"
     "  --force             start even where the preload can have no effect\n"
     "  -v, --explain       say first what will happen\n"
     "  -q, --quiet         no notes, errors only\n"
     "\n"
     "Status 2: a wrong option or value; 125: no libhybrid.so; 126: the program cannot be\n"
     "run this way; 127: no such program.\n"},
    {"status", ctl_status, "show who shares the DRAM now",
     "status [--json] [--registry FILE] [--watch SECONDS]",
     "Every participant of the registry: class, bytes on each tier, the DRAM it wishes and\n"
     "the DRAM it is asked for, threads, and the age of what it told last.\n"
     "\n"
     "  --json              for programs\n"
     "  --registry FILE     another registry than HYBRID_REGISTRY or this user's own\n"
     "  --watch SECONDS     again and again, until interrupted\n"
     "\n"
     "Status 1: there is no registry, so no participant.\n"},
    {"doctor", ctl_doctor, "what this machine offers, and how to enable what is missing",
     "doctor [--json]",
     "Looks for memory tiers, libraries, counters, page tracking and permissions, trying\n"
     "each for real, and tells the command that enables what is missing.\n"
     "\n"
     "Status 0: libhybrid can place memory here; 1: it would only pass calls through.\n"},
    {"tune", ctl_tune, "the best number of threads of a program on each memory",
     "tune [OPTION]... [--] PROGRAM [ARGUMENT]...",
     "Runs PROGRAM with 1, 2, 3 ... threads, its data on DRAM and then on PM, until more do\n"
     "not help; writes the fewest that are as fast as any number into the [threads] of a\n"
     "profile, and draws the two curves. {threads} in an argument becomes the number; without\n"
     "it OMP_NUM_THREADS is set and the program is confined to as many CPUs.\n"
     "\n"
     "  --medium WHICH      dram, pm or both\n"
     "  -o, --output FILE   the profile (PROGRAM.ini)\n"
     "  --max N             most threads to try (the CPUs)\n"
     "  --repeats N         runs of each point; noisy ones get up to 5 (2)\n"
     "  --metric REGEX      the time as the program prints it, the first group\n"
     "  --fresh             forget the runs of an interrupted tuning, which are else used\n"
     "\n"
     "On the emulated machine the time is the virtual one. Status 1: a run failed.\n"},
    {"options", ctl_options, "the options, their values and meaning", "options [--json] [NAME]",
     "The table of options. NAME, as HYBRID_DRAM_SHARED or dram-shared, explains one.\n"},
};

void ctl_help(const char *name, FILE *to)
{
    for (unsigned i = 0; i < HY_ARRAY_SIZE(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            fprintf(to, "Usage: hybridctl %s\n\n%s", commands[i].usage, commands[i].text);
    }
}

static void print_help(FILE *to)
{
    fputs("Usage: hybridctl COMMAND [ARGUMENT]...\n"
          "Places the memory of programs on two tiers, DRAM and a larger, slower memory.\n\n",
          to);
    for (unsigned i = 0; i < HY_ARRAY_SIZE(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("  help       help on a command\n\n"
          "  --version  print the version\n"
          "  --help     print this\n",
          to);
}

static const struct command *find_command(const char *name)
{
    const char *names[HY_ARRAY_SIZE(commands) + 1];
    for (unsigned i = 0; i < HY_ARRAY_SIZE(commands); i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) == 0)
            return &commands[i];
    }
    names[HY_ARRAY_SIZE(commands)] = "help";
    const char *near = ctl_nearest(name, names, HY_ARRAY_SIZE(names));
    if (near)
        ctl_error("there is no command '%s'; did you mean '%s'?", name, near);
    else
        ctl_error("there is no command '%s'; see hybridctl --help", name);
    return NULL;
}

/* Output that could not be written (a full disk) is an error, not a success. */
static int finish(int status)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        ctl_error("cannot write to standard output");
        return status == CTL_OK ? CTL_FAILED : status;
    }
    return status;
}

static int help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return CTL_OK;
    }
    const struct command *c = find_command(argv[1]);
    if (!c)
        return CTL_USAGE;
    ctl_help(c->name, stdout);
    return CTL_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CTL_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        puts("hybridctl " HY_VERSION);
        return finish(CTL_OK);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return finish(help(argc - 1, argv + 1));
    const struct command *c = find_command(name);
    if (!c)
        return CTL_USAGE;
    for (int i = 2; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            ctl_help(c->name, stdout);
            return finish(CTL_OK);
        }
    }
    char title[64]; /* what getopt's messages begin with */
    snprintf(title, sizeof(title), "hybridctl %s", c->name);
    argv[1] = title;
    return finish(c->run(argc - 1, argv + 1));
}
