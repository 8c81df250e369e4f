/* SPDX-License-Identifier: BSD-2-Clause
 * hybrid-emu run: checks settings and program, composes the command and becomes it, so
 * that exit status and signals are the program's own. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "settings/settings.h"
#include "qemu/command.h"
#include "tool/cleaner.h"
#include "tool/tool.h"

#define PLUGIN        "libpmemuq.so"
#define GUEST_LIBRARY "libpmemu-guest.so"

enum { KEY_PRELOAD = 256, KEY_QEMU, KEY_SETTING }; /* KEY_SETTING + number in the table */

struct request {
    const char *qemu;
    char **command;
    char program[PATH_MAX], qemu_path[PATH_MAX], plugin[PATH_MAX], guest_library[PATH_MAX];
    char machine[64]; /* a temporary one; "" if the user has named one */
};

/* --- the command line ------------------------------------------------------- */

static char names[EMU_SETTING_COUNT][32]; /* "pm-dir" */
static struct option options[EMU_SETTING_COUNT + 3];

static void build_options(void)
{
    for (int s = 0; s < EMU_SETTING_COUNT; s++) {
        const struct emu_setting_info *i = emu_setting_info((enum emu_setting)s);
        snprintf(names[s], sizeof(names[s]), "%s", i->env + strlen("HYBRID_EMU_"));
        for (char *c = names[s]; *c; c++)
            *c = *c == '_' ? '-' : (char)tolower(*c);
        options[s] =
            (struct option){names[s], s == EMU_S_STATS ? optional_argument : required_argument,
                            NULL, KEY_SETTING + s};
    }
    options[EMU_SETTING_COUNT] = (struct option){"preload", required_argument, NULL, KEY_PRELOAD};
    options[EMU_SETTING_COUNT + 1] = (struct option){"qemu", required_argument, NULL, KEY_QEMU};
}

/* Names are made absolute: the program may change its directory and start others. */
static int set(const char *name, const char *value, bool is_path)
{
    char path[PATH_MAX], here[PATH_MAX];

    if (is_path && *value && value[0] != '/') {
        if (!getcwd(here, sizeof(here)) ||
            snprintf(path, sizeof(path), "%s/%s", here, value) >= (int)sizeof(path)) {
            tool_error("%s: %s", value, strerror(ENAMETOOLONG));
            return TOOL_FAILED;
        }
        value = path;
    }
    return setenv(name, value, 1) == 0 ? TOOL_OK : TOOL_FAILED;
}

static int set_setting(enum emu_setting s, const char *value)
{
    bool path = s == EMU_S_PM_DIR || s == EMU_S_MACHINE ||
                (s == EMU_S_STATS && value && strcmp(value, "1") != 0);
    return set(emu_setting_info(s)->env, value ? value : "1", path);
}

static int add_preload(const char *library)
{
    static char all[4 * PATH_MAX];
    const char *old = getenv("LD_PRELOAD");
    char path[PATH_MAX];
    int n;

    /* A name without a slash is the loader's to find. */
    if (strchr(library, '/') && !realpath(library, path)) {
        tool_error("--preload %s: %s", library, strerror(errno));
        return TOOL_USAGE;
    }
    if (!strchr(library, '/'))
        snprintf(path, sizeof(path), "%s", library);
    if (path[strcspn(path, " :,")]) {
        tool_error("--preload %s: the loader takes no names with a space, colon or comma", path);
        return TOOL_USAGE;
    }
    n = snprintf(all, sizeof(all), "%s%s%s", path, old && *old ? ":" : "", old ? old : "");
    return n < (int)sizeof(all) ? set("LD_PRELOAD", all, false) : TOOL_FAILED;
}

static int parse(int argc, char **argv, struct request *q)
{
    int c, r = TOOL_OK;

    build_options();
    opterr = 0;
    while (r == TOOL_OK && (c = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
        if (c == KEY_PRELOAD)
            r = add_preload(optarg);
        else if (c == KEY_QEMU)
            q->qemu = optarg;
        else if (c >= KEY_SETTING)
            r = set_setting((enum emu_setting)(c - KEY_SETTING), optarg);
        else {
            tool_error(c == ':' ? "%s needs a value"
                                : "run has no option %s; see hybrid-emu help run",
                       argv[optind - 1]);
            r = TOOL_USAGE;
        }
    }
    q->command = argv + optind;
    if (r == TOOL_OK && optind == argc) {
        tool_error("which program? Usage: hybrid-emu run [OPTION]... [--] PROGRAM [ARGUMENT]...");
        r = TOOL_USAGE;
    }
    return r;
}

/* --- what is needed ---------------------------------------------------------- */

/* As execvp looks: as it is with a slash, else along PATH. 0 or -errno. */
static int find_program(const char *name, char ret[PATH_MAX])
{
    const char *dir = getenv("PATH");
    int found = -ENOENT;

    if (strchr(name, '/')) {
        if (snprintf(ret, PATH_MAX, "%s", name) >= PATH_MAX)
            return -ENAMETOOLONG;
        return access(ret, X_OK) == 0 ? 0 : -errno;
    }
    for (dir = dir ? dir : "/bin:/usr/bin"; *name && found != 0; dir++) {
        size_t n = strcspn(dir, ":");
        char at[PATH_MAX];
        int len = snprintf(at, sizeof(at), "%.*s%s%s", (int)n, dir, n ? "/" : "./", name);
        if (len < (int)sizeof(at) && access(at, X_OK) == 0) {
            memcpy(ret, at, (size_t)len + 1);
            found = 0;
        }
        dir += n;
        if (!*dir)
            break;
    }
    return found;
}

/* In the build tree beside this program, else where both are installed. */
static bool find_module(const char *name, char ret[PATH_MAX])
{
    static const char *const places[] = {"/../qemu", "/../" EMU_LIBDIR "/hybrid-emu"};
    char exe[PATH_MAX], at[2 * PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[n > 0 ? n : 0] = '\0';
    if (strrchr(exe, '/'))
        *strrchr(exe, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(at, sizeof(at), "%s%s/%s", exe, places[i], name);
        if (realpath(at, ret))
            return true;
    }
    snprintf(at, sizeof(at), "%s/%s", EMU_MODULES, name);
    return realpath(at, ret) != NULL;
}

static int find_tools(struct request *q, struct command_tools *ret)
{
    const char *qemu = q->qemu ? q->qemu : "qemu-x86_64";

    if (find_program(qemu, q->qemu_path) < 0 &&
        (q->qemu || find_program("qemu-x86_64-static", q->qemu_path) == 0)) {
        /* The static one opens no plugins. */
        tool_error("%s: %s", qemu,
                   q->qemu ? "no such program"
                           : "not found (qemu-x86_64-static, "
                             "which is there, cannot open plugins): install the package qemu-user");
        return TOOL_FAILED;
    }
    if (!q->qemu_path[0]) {
        tool_error("qemu-x86_64 is not installed: it is in the package qemu-user");
        return TOOL_FAILED;
    }
    if (!find_module(PLUGIN, q->plugin) || !find_module(GUEST_LIBRARY, q->guest_library)) {
        tool_error(PLUGIN " and " GUEST_LIBRARY
                          " are neither beside this build nor in " EMU_MODULES);
        return TOOL_FAILED;
    }
    *ret = (struct command_tools){q->qemu_path, q->plugin, q->guest_library};
    return TOOL_OK;
}

static int refuse_program(const char *name, const struct program *p)
{
    if (p->set_id)
        tool_error(
            "%s is set-user-ID or set-group-ID: its privileges would be lost under QEMU; run "
            "a copy of it",
            name);
    else if (p->kind == PROGRAM_FOREIGN)
        tool_error("%s is not a program for x86-64, 64 bits", name);
    else
        tool_error("%s is neither a readable ELF program nor a script with #!", name);
    return TOOL_CANNOT_RUN;
}

static int compose_failed(const char *name, int e)
{
    if (e == -EINVAL)
        tool_error(
            "a comma in LD_PRELOAD, another LD_ variable or the plugin's path: QEMU's options "
            "cannot carry it");
    else
        tool_error("%s: %s", name, strerror(-e));
    return e == -ENOENT || e == -ENOTDIR ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN;
}

/* --- run ---------------------------------------------------------------------- */

/* What the program starts is to be on the same machine, so the machine needs a name. */
static int name_machine(struct request *q)
{
    if (*emu_setting(EMU_S_MACHINE))
        return TOOL_OK;
    snprintf(q->machine, sizeof(q->machine), "/dev/shm/hybrid-emu-%d-%d", (int)getuid(),
             (int)getpid());
    return setenv("HYBRID_EMU_MACHINE", q->machine, 1) == 0 ? TOOL_OK : TOOL_FAILED;
}

int tool_run(int argc, char **argv)
{
    static struct request q;
    static struct program program;
    static char room[1 << 20];
    struct command_tools tools = {NULL, NULL, NULL};
    struct emu_settings settings;
    struct command c;
    size_t bytes = sizeof(room);
    void *at = room;
    int r = parse(argc, argv, &q);

    if (r != TOOL_OK)
        return r;
    r = find_program(q.command[0], q.program);
    if (r < 0) {
        tool_error("%s: %s", q.command[0], r == -ENOENT ? "no such program" : strerror(-r));
        return r == -ENOENT || r == -ENOTDIR ? TOOL_NOT_FOUND : TOOL_CANNOT_RUN;
    }
    emu_settings_read(&settings); /* does not return when one is wrong */
    r = name_machine(&q);
    if (r != TOOL_OK)
        return r;
    if (setenv("OMP_WAIT_POLICY", "passive", 0) < 0)
        return TOOL_FAILED;
    /* Needed or not is known when the program has been looked at: messages in that order. */
    r = program_look(q.program, &program);
    if (r == 0 && program.kind != PROGRAM_INSTRUMENTED && (r = find_tools(&q, &tools)) != TOOL_OK)
        return r;
    while ((r = command_make(q.program, q.command, environ, &tools, at, bytes, &c, &program)) ==
               -E2BIG &&
           bytes < (1u << 30)) {
        bytes *= 4;
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            break;
    }
    if (r < 0)
        return compose_failed(q.command[0], r);
    if (r == COMMAND_AS_IT_IS && program.kind != PROGRAM_INSTRUMENTED)
        return refuse_program(q.command[0], &program);
    if (q.machine[0] && cleaner_start(q.machine) < 0)
        tool_error("warning: %s stays behind if the program is killed", q.machine);
    execve(c.path, c.argv, c.envp);
    tool_error("%s: %s", c.path, strerror(errno));
    return TOOL_CANNOT_RUN;
}
