/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl: runs programs under libhybrid.so and tells what happens. This file
 * has the table of subcommands and their help. */
#include "tools/ctl/ctl.h"

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
     "Checks the settings and the program, puts libhybrid.so in front of LD_PRELOAD\n"
     "and becomes PROGRAM: exit status and signals are the program's own.\n"
     "\n"
     "  --NAME=VALUE        any option of the table (`hybridctl options`), for\n"
     "                      example --policy pm, --dram 8G, --pm emulated,\n"
     "                      --stats[=FILE]\n"
     "  --set NAME=VALUE    the same, with the name as in a profile or the\n"
     "                      environment\n"
     "  --library FILE      this libhybrid.so (also: HYBRIDCTL_LIBRARY)\n"
     "  --check             check and explain only, start nothing\n"
     "  --force             start even where the preload can have no effect\n"
     "  -v, --explain       say first what will happen\n"
     "  -q, --quiet         no notes, errors only\n"
     "\n"
     "Status 2: a wrong option or value; 125: no libhybrid.so; 126: the program\n"
     "cannot be run this way; 127: no such program.\n"},
    {"status", ctl_status, "show who shares the DRAM now",
     "status [--json] [--registry FILE] [--watch SECONDS]",
     "Every participant of the registry: class and how sure it is, bytes on each\n"
     "tier, DRAM wished for (+) or to be given up (-), bytes moved so far, threads\n"
     "(and how many may run at a time), the predicted slowdown with all data on PM,\n"
     "and the age of what was told last.\n"
     "\n"
     "  --json              for programs\n"
     "  --registry FILE     another registry than HYBRID_REGISTRY or this user's own\n"
     "  --watch SECONDS     again and again, until interrupted\n"
     "\n"
     "Status 1: there is no registry, so no participant.\n"},
    {"top", ctl_top, "the same, live: moves, written pages, slowdown, threads",
     "top [--interval S] [--sort KEY] [--reverse] [--once] [--json]\n"
     "                     [--registry FILE]",
     "Every participant of the registry, again and again. Columns: class and how sure\n"
     "it is; bytes on each tier; bytes moved a second; bytes in pages that the last\n"
     "look saw written; threads, and how many may run at a time; DRAM wished for (+)\n"
     "or to be given up (-); SLOW, the predicted slowdown with all data on PM; NOW\n"
     "(from 100 columns on), the same as the data lie; and the age of what was told\n"
     "last.\n"
     "\n"
     "  --interval S        seconds between two looks, 0.1 to 3600 (1)\n"
     "  --sort KEY          dram, pm, moves, written, threads, slowdown, pid or name\n"
     "  --reverse           the other way round\n"
     "  --once              two looks, as rates need; show the second and end\n"
     "  --json              for programs: a document for each look\n"
     "  --registry FILE     another registry than HYBRID_REGISTRY or this user's own\n"
     "\n"
     "Keys: q ends, space looks at once, d p m w t s i n sort, r reverses. Where the\n"
     "output is no terminal, or TERM is dumb, plain lines. Status 1: no registry\n"
     "(--once), or none that can be read.\n"},
    {"report", ctl_report, "a page of what happened in a run", "report [-o OUT.html] FILE...",
     "Makes one self-contained HTML page of traces (HYBRID_TRACE=FILE) and exit\n"
     "reports (HYBRID_STATS=FILE) of one or more processes: page heat, write domain\n"
     "and place over time, memory, moves, counts, class, threads, what it gained and\n"
     "how that was estimated, settings, warnings. An exit report joins the trace of\n"
     "the same process.\n"
     "\n"
     "  -o, --output FILE   the page (the name of the first FILE with .html); - is\n"
     "                      standard output\n"
     "\n"
     "Status 1: a FILE cannot be read, or the page not be written; the others are\n"
     "shown.\n"},
    {"doctor", ctl_doctor, "what this machine offers, and how to enable what is missing",
     "doctor [--json]",
     "Looks for memory tiers, libraries, counters, page tracking and permissions,\n"
     "trying each for real, and tells the command that enables what is missing.\n"
     "\n"
     "Status 0: libhybrid can place memory here; 1: it would only pass calls through.\n"},
    {"record", ctl_record, "make a profile of a program",
     "record [-o FILE] [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
     "       hybridctl record --merge -o FILE INPUT...",
     "Runs PROGRAM with all its memory on DRAM and writes a profile: class, slowdown\n"
     "on PM, phases, threads, footprint, and for each call site that allocates its\n"
     "bytes and, where accesses can be sampled, the lines read and written. The\n"
     "status is the program's.\n"
     "\n"
     "  -o, --output FILE   the profile (PROGRAM.ini); %p becomes a process id\n"
     "  --exe NAME          of what PROGRAM starts, the profile of this executable\n"
     "  --keep PERCENT      leave out sites with less of the bytes and of the lines\n"
     "                      (0.1)\n"
     "  --machine NAME|FILE figures of the memories (HYBRID_MACHINE)\n"
     "  --period TIME       length of a window of counts (HYBRID_CLASS_PERIOD)\n"
     "  --sample SIZE       trace one small allocation for so many bytes (64K)\n"
     "  --no-names          do not name sites by the symbols of their modules\n"
     "  --note TEXT         a comment for the top of the profile\n"
     "  --offline           without counters: runs PROGRAM twice, under valgrind's\n"
     "                      cachegrind and on the emulated machine if hybrid-emu is\n"
     "                      there; slow\n"
     "  --llc SIZE          last-level cache to simulate (this machine's, at most\n"
     "                      32M)\n"
     "  --write-backs       simulate write-backs (callgrind), for programs that\n"
     "                      change what they have read before; slower\n"
     "  --merge             make one profile of several, of runs or ranks, or of\n"
     "                      recordings of counts (HYBRID_RECORD=FILE.rec)\n"
     "\n"
     "Status 125: PROGRAM left no profile, or it cannot be written.\n"},
    {"tune", ctl_tune, "the best number of threads of a program on each memory",
     "tune [OPTION]... [--] PROGRAM [ARGUMENT]...",
     "Runs PROGRAM with 1, 2, 3 ... threads, its data on DRAM and then on PM, until\n"
     "more do not help; writes the fewest that are as fast as any number into the\n"
     "[threads] of a profile, and draws the two curves. {threads} in an argument\n"
     "becomes the number; without it OMP_NUM_THREADS is set and the program is\n"
     "confined to as many CPUs.\n"
     "\n"
     "  --medium WHICH      dram, pm or both\n"
     "  -o, --output FILE   the profile (PROGRAM.ini)\n"
     "  --max N             most threads to try (the CPUs)\n"
     "  --repeats N         runs of each point; noisy ones get up to 5 (2)\n"
     "  --metric REGEX      the time as the program prints it, the first group\n"
     "  --fresh             forget the runs of an interrupted tuning, which are else\n"
     "                      used\n"
     "\n"
     "On the emulated machine the time is the virtual one. Status 1: a run failed.\n"},
    {"batch", ctl_batch, "run the jobs of a file in an order that spares the memories",
     "batch [OPTION]... JOBFILE",
     "Runs the commands of JOBFILE, one a line, a few at a time, each under the\n"
     "library. Jobs of which nothing is known are learnt first; then short ones, as\n"
     "long as the whole batch takes no longer by it. No two that hold each other up\n"
     "at PM, or need more DRAM than there is, run side by side where that can be\n"
     "avoided. A line:\n"
     "\n"
     "  [name=N] [threads=N] [profile=P] [class=C] [dram=SIZE] [policy=P] [dir=DIR]\n"
     "  [stdin=FILE] [after=NAME,...] [VARIABLE=VALUE]... [--] PROGRAM [ARGUMENT]...\n"
     "\n"
     "  --slots N           jobs at a time (2)\n"
     "  -o, --output DIR    output of the jobs, journal and page (JOBFILE.batch)\n"
     "  --dry-run           show who would run when, beside whom and why; run nothing\n"
     "  --resume            go on with a batch that was interrupted or killed\n"
     "  --fresh             forget one that was interrupted\n"
     "  --alpha A           the part of all bandwidth below which jobs need little\n"
     "                      (0.1)\n"
     "  --pair              memory-bound jobs beside compute-bound ones, in place of\n"
     "                      that order\n"
     "  --clock             a lower clock while only memory-bound jobs run, where\n"
     "                      cpufreq may be set\n"
     "  --admission HOW     HYBRID_ADMISSION of the jobs (wait:30)\n"
     "  -q, --quiet         errors and the table at the end only\n"
     "\n"
     "The first SIGINT or SIGTERM is passed on and nothing more is started, a second\n"
     "one kills. Status 0: all jobs ended with 0; else that of the first in the file\n"
     "that did not (125: it was not started); 2: a wrong option or line; 128 and the\n"
     "signal: interrupted.\n"},
    {"explain", ctl_explain, "what a profile says, and what would go where",
     "explain [--dram SIZE] [--machine NAME|FILE] [--all] [--json]\n"
     "                         PROFILE",
     "Tells in words and numbers what libhybrid will do with a profile: the class of\n"
     "the program and how slow it is on PM, which call sites get DRAM and why, what\n"
     "it gains by the machine's figures, how many threads, and what does not fit this\n"
     "machine or build. PROFILE is a file, or the name of one in HYBRID_PROFILE_PATH.\n"
     "\n"
     "  --dram SIZE         with so much DRAM: 512M, 8G, 25% (of this machine)\n"
     "  --machine WHICH     with the figures of a technology (optane, cxl, stt-ram,\n"
     "                      pram, remote-numa) or of a machine file; see hybridctl\n"
     "                      calibrate\n"
     "  --all               all call sites and phases, not only the first 20 and 5\n"
     "  --json              for programs\n"
     "\n"
     "Status 1: it cannot be read, or is no profile; 2: a wrong option or value.\n"},
    {"calibrate", ctl_calibrate, "measure what the two memories of this machine can do",
     "calibrate [OPTION]...",
     "Measures latency, bandwidth of reads and writes in order and at random with 1,\n"
     "2, 3 ... threads, and what traffic on one memory leaves of the other; writes\n"
     "the machine file that libhybrid uses from then on, and draws it. For a machine\n"
     "that does nothing else meanwhile; takes some minutes.\n"
     "\n"
     "  -o, --output FILE   the machine file (libhybrid/machine.ini below\n"
     "                      $XDG_CONFIG_HOME or ~/.config; for all users:\n"
     "                      /etc/libhybrid/machine.ini)\n"
     "  --plot FILE         the picture: PNG, SVG or PDF (beside the machine file)\n"
     "  --pm SPEC           the second memory, as HYBRID_PM\n"
     "  --quick             fewer and shorter rounds, fewer numbers of threads\n"
     "  --threads N         most threads (the CPUs near the PM)\n"
     "  --size SIZE         memory to measure on, of each kind (16 times the largest\n"
     "                      cache)\n"
     "  --emulated          measure the emulated machine of HYBRID_EMU_PRESET (needs\n"
     "                      -o)\n"
     "  --force             write the file whatever is doubtful\n"
     "\n"
     "Status 1: nothing is written, as something failed or is doubtful; 2: a wrong\n"
     "option, value or memory.\n"},
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
