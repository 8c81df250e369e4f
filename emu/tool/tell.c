/* SPDX-License-Identifier: BSD-2-Clause
 * hybrid-emu presets, settings and show: tables. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "settings/settings.h"
#include "machine/machine.h"
#include "model/params.h"
#include "tool/tool.h"

static void print_medium(const char *preset, const char *name, const struct emu_medium *m)
{
    printf("%-12s %-5s %8.1f %8.1f %8" PRId64 " %8" PRId64 " %6" PRId64 " %8" PRId64 " %8" PRId64
           " %10.2g\n",
           preset, name, (double)m->read_ps / 1000, (double)m->write_ps / 1000, m->read_mbs,
           m->write_mbs, m->block, m->read_pj, m->write_pj, (double)m->endurance);
}

int tool_presets(int argc, char **argv)
{
    int r = tool_arguments(argc, argv, 0);

    if (r != TOOL_OK)
        return r;
    printf("%-12s %-5s %8s %8s %8s %8s %6s %8s %8s %10s\n", "preset", "", "read", "write", "read",
           "write", "block", "read", "write", "endurance");
    printf("%-12s %-5s %8s %8s %8s %8s %6s %8s %8s %10s\n", "", "", "ns", "ns", "MB/s", "MB/s",
           "bytes", "pJ/64 B", "pJ/64 B", "writes");
    for (size_t i = 0; i < emu_preset_count(); i++) {
        struct emu_params p;
        if (emu_params_preset(emu_preset_name(i), &p) < 0)
            continue;
        print_medium(emu_preset_name(i), "DRAM", &p.medium[EMU_DRAM]);
        print_medium("", "PM", &p.medium[EMU_PM]);
    }
    putchar('\n');
    for (size_t i = 0; i < emu_preset_count(); i++)
        printf("%-12s %s\n", emu_preset_name(i), emu_preset_help(i));
    puts("\nEndurance 0: no limit. Sources: emu/model/presets.def.");
    return TOOL_OK;
}

/* Text in lines of some 90 columns behind a margin. */
static void print_wrapped(const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t word = strcspn(text, " ");
        if (column == 0 || column + 1 + word > 84) {
            printf("%s      %.*s", column ? "\n" : "", (int)word, text);
            column = word;
        } else {
            printf(" %.*s", (int)word, text);
            column += 1 + word;
        }
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

int tool_settings(int argc, char **argv)
{
    const char *asked = argc > 1 ? argv[1] : NULL;
    int r = tool_arguments(argc, argv, 1);
    bool found = false;

    if (r != TOOL_OK)
        return r;
    if (asked && strncasecmp(asked, "HYBRID_EMU_", 11) == 0)
        asked += 11;
    for (int s = 0; s < EMU_SETTING_COUNT; s++) {
        const struct emu_setting_info *i = emu_setting_info((enum emu_setting)s);
        if (asked && strcasecmp(asked, i->env + 11) != 0)
            continue;
        found = true;
        printf("%s=%s", i->env, i->allowed);
        if (*i->dflt)
            printf("   (%s)", i->dflt);
        putchar('\n');
        print_wrapped(i->help);
    }
    if (!found) {
        tool_error("there is no setting '%s'; see hybrid-emu settings", asked);
        return TOOL_USAGE;
    }
    return TOOL_OK;
}

/* --- show ------------------------------------------------------------------- */

static const char *preset_of(const struct emu_params *p)
{
    for (size_t i = 0; i < emu_preset_count(); i++) {
        struct emu_params q;
        if (emu_params_preset(emu_preset_name(i), &q) == 0 &&
            memcmp(q.medium, p->medium, sizeof(q.medium)) == 0)
            return emu_preset_name(i);
    }
    return "of its own numbers";
}

/* The program's name; of one under QEMU, what follows QEMU's options. */
static void command_of(int pid, char *ret, size_t cap)
{
    char path[40], text[4096] = "";
    const char *at = text, *end = text, *slash;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    f = fopen(path, "re");
    if (f) {
        end += fread(text, 1, sizeof(text) - 1, f);
        fclose(f);
    }
    if (strstr(text, "qemu-x86_64")) {
        at += strlen(at) + 1;
        /* All of ours take a value. */
        for (int words = 0; at < end && (words % 2 || *at == '-'); words++)
            at += strlen(at) + 1;
    }
    if (at >= end)
        at = "?";
    slash = strrchr(at, '/');
    snprintf(ret, cap, "%s", slash ? slash + 1 : at);
}

static int threads_of(const struct emu_machine *m, int pid)
{
    int n = 0;
    for (int i = 0; i < EMU_THREADS; i++)
        if (atomic_load(&m->clock.thread[i].state) != EMU_FREE &&
            atomic_load(&m->clock.thread[i].pid) == pid)
            n++;
    return n;
}

static void print_process(const struct emu_machine *m, const struct emu_process *p)
{
    const _Atomic uint64_t *c = p->count;
    int pid = atomic_load(&p->pid);
    char name[32];

    command_of(pid, name, sizeof(name));
    printf("%8d %-16s %4d %10.3f %10.3f %11" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
           " %9" PRIu64 "\n",
           pid, name, threads_of(m, pid), (double)atomic_load(&p->begin) * 1e-9,
           (double)(atomic_load(&p->end) - atomic_load(&p->begin)) * 1e-9,
           atomic_load(&c[EMU_C_instructions]), atomic_load(&c[EMU_C_llc_reads_dram]),
           atomic_load(&c[EMU_C_llc_reads_pm]), atomic_load(&c[EMU_C_writebacks_dram]),
           atomic_load(&c[EMU_C_writebacks_pm]));
}

int tool_show(int argc, char **argv)
{
    const struct emu_machine *m;
    int r = tool_arguments(argc, argv, 1), n = 0;

    if (r != TOOL_OK)
        return r;
    if (argc < 2) {
        tool_error("show which machine? Usage: hybrid-emu show FILE");
        return TOOL_USAGE;
    }
    r = emu_machine_look(argv[1], &m);
    if (r < 0) {
        tool_error("%s: %s", argv[1],
                   r == -EPERM ? "not a machine of this version of hybrid-emu" : strerror(-r));
        return TOOL_NONE;
    }
    printf("%s: machine %s, %" PRId64 " CPUs, LLC %" PRId64 " KiB, virtual time %.3f ms\n\n",
           argv[1], preset_of(&m->params), m->params.cpus, m->params.llc_kb,
           (double)atomic_load(&m->clock.newest) * 1e-9);
    printf("%8s %-16s %4s %10s %10s %11s %9s %9s %9s %9s\n", "", "", "", "from", "for", "", "reads",
           "reads", "writes", "writes");
    printf("%8s %-16s %4s %10s %10s %11s %9s %9s %9s %9s\n", "process", "", "thr", "ms", "ms",
           "instr.", "DRAM", "PM", "DRAM", "PM");
    for (int i = 0; i < EMU_PROCESSES; i++)
        if (emu_process_alive(&m->process[i])) {
            print_process(m, &m->process[i]);
            n++;
        }
    if (n == 0)
        puts("    nobody (the next program to come clears what killed ones have left)");
    return TOOL_OK;
}
