/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl run: checks settings, program and library, then becomes the program
 * with libhybrid.so preloaded. The program's status and signals are its own, as
 * no process of ours stays. */
#include "tools/ctl/ctl.h"

#include <elf.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "config.h"
#include "place/registry.h"
#include "sys/emulator.h"
#include "sys/env.h"
#include "sys/os.h"

enum { KEY_LIBRARY = OPT_COUNT + 256, KEY_SET, KEY_CHECK, KEY_FORCE };
/* The options of the table are 256 + id for getopt. */
enum { KEY_TABLE = 256 };

struct request {
    const char *library; /* as asked for */
    bool check, force, explain, quiet;
    char **command; /* program and arguments, NULL at the end */
    char program[PATH_MAX];
    char library_path[PATH_MAX];
};

/* --- the command line ---------------------------------------------------- */

static char option_names[OPT_COUNT][64]; /* "dram-shared" */
static struct option long_options[OPT_COUNT + 8];

static void build_long_options(void)
{
    static const struct option own[] = {
        {"library", required_argument, NULL, KEY_LIBRARY},
        {"set", required_argument, NULL, KEY_SET},
        {"check", no_argument, NULL, KEY_CHECK},
        {"force", no_argument, NULL, KEY_FORCE},
        {"explain", no_argument, NULL, 'v'},
        {"quiet", no_argument, NULL, 'q'},
    };
    for (int i = 0; i < OPT_COUNT; i++) {
        char *name = option_names[i];
        snprintf(name, sizeof(option_names[i]), "%s", options_info(i)->key);
        for (char *c = name; *c; c++)
            *c = *c == '_' ? '-' : *c;
        /* these mean "1" without a value */
        bool may_be_bare = i == OPT_STATS || i == OPT_TRACE || i == OPT_STRICT || i == OPT_VERBOSE;
        long_options[i] = (struct option){name, may_be_bare ? optional_argument : required_argument,
                                          NULL, KEY_TABLE + i};
    }
    memcpy(long_options + OPT_COUNT, own, sizeof(own));
}

struct complaint {
    const char *option;
    int count;
};

static void complain(void *ctx, const char *message)
{
    struct complaint *c = ctx;
    /* The library goes on with another value; here the run ends instead. */
    const char *tail = strrchr(message, ';');
    bool cut = tail && strstr(tail, "is used instead");
    c->count++;
    ctl_error("%s: %.*s", c->option, cut ? (int)(tail - message) : (int)strlen(message), message);
}

static int set_option(enum hy_opt_id id, const char *value, const char *written)
{
    struct hy_settings scratch;
    struct complaint c = {.option = written};
    options_defaults(&scratch);
    if (options_set(&scratch, id, value, HY_FROM_ENV, complain, &c) < 0)
        return CTL_USAGE;
    if (setenv(options_info(id)->env, value, 1) < 0) {
        ctl_error("%s: %s", written, strerror(errno));
        return CTL_FAILED;
    }
    return CTL_OK;
}

static int set_by_name(const char *assignment)
{
    char name[64];
    size_t len = strcspn(assignment, "=");
    if (assignment[len] != '=' || len == 0 || len >= sizeof(name)) {
        ctl_error("--set takes NAME=VALUE, not '%s'", assignment);
        return CTL_USAGE;
    }
    memcpy(name, assignment, len);
    name[len] = '\0';
    enum hy_opt_id id = ctl_find_option(name, "--set: ");
    return id != OPT_COUNT ? set_option(id, assignment + len + 1, "--set") : CTL_USAGE;
}

static int reject_option(int c, char **argv)
{
    const char *names[OPT_COUNT + 8];
    unsigned n = 0;
    if (c == ':') {
        ctl_error("%s needs a value", argv[optind - 1]);
        return CTL_USAGE;
    }
    const char *written = optopt && optopt < KEY_TABLE ? NULL : argv[optind - 1];
    if (!written) {
        ctl_error("run has no option -%c; see hybridctl help run", optopt);
        return CTL_USAGE;
    }
    if (optopt) { /* known, but written with a value that it does not take */
        ctl_error("%s: this option takes no value", written);
        return CTL_USAGE;
    }
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(written + 2, "="), written + 2);
    for (; long_options[n].name; n++)
        names[n] = long_options[n].name;
    const char *near = ctl_nearest(name, names, n);
    if (near)
        ctl_error("run has no option --%s; did you mean --%s?", name, near);
    else
        ctl_error("run has no option --%s; see hybridctl help run", name);
    return CTL_USAGE;
}

static int take_option(int c, struct request *q, char **argv)
{
    char written[80];
    switch (c) {
    case KEY_LIBRARY:
        q->library = optarg;
        return CTL_OK;
    case KEY_SET:
        return set_by_name(optarg);
    case KEY_CHECK:
        q->check = true;
        return CTL_OK;
    case KEY_FORCE:
        q->force = true;
        return CTL_OK;
    case 'v':
        q->explain = true;
        return CTL_OK;
    case 'q':
        q->quiet = true;
        return CTL_OK;
    case '?':
    case ':':
        return reject_option(c, argv);
    }
    snprintf(written, sizeof(written), "--%s", option_names[c - KEY_TABLE]);
    return set_option(c - KEY_TABLE, optarg ? optarg : "1", written);
}

static int parse(int argc, char **argv, struct request *q)
{
    int c, r;
    build_long_options();
    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:vq", long_options, NULL)) != -1) {
        if ((r = take_option(c, q, argv)) != CTL_OK)
            return r;
    }
    q->command = argv + optind;
    if (optind < argc)
        return CTL_OK;
    ctl_error("which program? Usage: hybridctl run [OPTION]... [--] PROGRAM [ARGUMENT]...");
    return CTL_USAGE;
}

/* --- the library --------------------------------------------------------- */

/* Ours comes first, so that it sees every call; an allocator that is preloaded
 * as well stays behind it (HYBRID_DRAM_ALLOCATOR=next uses it). */
static int set_preload(const struct request *q)
{
    const char *old = env_get("LD_PRELOAD");
    if (q->library_path[strcspn(q->library_path, " :")]) {
        /* the loader takes both for separators and knows no quoting */
        ctl_error("%s: a library cannot be preloaded from a path with a space or a colon",
                  q->library_path);
        return CTL_FAILED;
    }
    size_t cap = strlen(q->library_path) + (old ? strlen(old) : 0) + 2;
    char *value = malloc(cap);
    if (!value)
        return CTL_FAILED;
    snprintf(value, cap, "%s%s%s", q->library_path, old && *old ? ":" : "", old ? old : "");
    int r = setenv("LD_PRELOAD", value, 1);
    free(value);
    return r == 0 ? CTL_OK : CTL_FAILED;
}

/* --- the program --------------------------------------------------------- */

static int executable(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
    return access(path, X_OK) < 0 ? -errno : 0;
}

/* As execvp looks: the path as it is with a slash, else along PATH. */
static int find_program(struct request *q)
{
    const char *name = q->command[0];
    const char *path = env_get("PATH");
    int found = -ENOENT;

    if (strchr(name, '/')) {
        snprintf(q->program, sizeof(q->program), "%s", name);
        found = strlen(name) < sizeof(q->program) ? executable(name) : -ENAMETOOLONG;
    } else if (*name) {
        for (const char *dir = path ? path : "/bin:/usr/bin"; found != 0; dir++) {
            size_t len = strcspn(dir, ":");
            char candidate[sizeof(q->program)];
            int n = snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)len, dir,
                             len ? "/" : "./", name);
            int r = n < (int)sizeof(candidate) ? executable(candidate) : -ENOENT;
            if (r == 0 || (r == -EACCES && found == -ENOENT)) {
                memcpy(q->program, candidate, (size_t)n + 1);
                found = r;
            }
            dir += len;
            if (!*dir)
                break;
        }
    }
    if (found == 0)
        return CTL_OK;
    bool missing = found == -ENOENT || found == -ENOTDIR;
    ctl_error("%s: %s", name, missing ? "no such program" : strerror(-found));
    return missing ? CTL_NOT_FOUND : CTL_CANNOT_RUN;
}

/* Follow "#!" to the ELF file that the kernel really starts. */
static int resolve_scripts(const char *program, char *elf_path, struct ctl_program *ret)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", program);
    for (int depth = 0; depth < 5; depth++) {
        int r = ctl_inspect_program(path, ret);
        if (r < 0)
            return r;
        memcpy(elf_path, path, sizeof(path));
        if (ret->is_elf || !ret->interpreter[0])
            return 0;
        snprintf(path, sizeof(path), "%s", ret->interpreter);
    }
    return -ELOOP;
}

static const char *why_unreachable(const struct ctl_program *p)
{
    static const char loader[] = "/ld-linux";
    if (!p->is_64bit || (p->machine != EM_X86_64 && p->machine != EM_AARCH64))
        return "it is a program for another processor mode (32-bit?) than libhybrid.so, which "
               "the loader then ignores";
    if (!p->is_dynamic)
        return "it is statically linked, and LD_PRELOAD has no effect on static programs";
    if (!strstr(p->interpreter, loader))
        return "its C library is not the GNU one, for which libhybrid.so is made";
    return NULL;
}

/* setuid, setgid and file capabilities make the loader drop a preload. */
static void warn_privileged(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return;
    bool setuid = (st.st_mode & S_ISUID) && st.st_uid != getuid();
    bool setgid = (st.st_mode & S_ISGID) && st.st_gid != getgid();
    bool caps = getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
    if (setuid || setgid || caps)
        ctl_error("warning: %s is %s; the loader ignores the preload for other users' sake", path,
                  setuid   ? "setuid"
                  : setgid ? "setgid"
                           : "privileged (file capabilities)");
}

static int check_program(struct request *q, char *elf_path)
{
    struct ctl_program p = {0};
    int r = resolve_scripts(q->program, elf_path, &p);
    if (r == -EACCES) /* executable but not readable: the loader may still be */
        return CTL_OK;
    if (r < 0 && p.interpreter[0])
        ctl_error("%s: its interpreter %s cannot be used: %s", q->program, p.interpreter,
                  strerror(-r));
    else if (r < 0)
        ctl_error("%s: %s", q->program, strerror(-r));
    if (r < 0)
        return CTL_CANNOT_RUN;
    if (!p.is_elf) /* execvp gives it to /bin/sh */
        return CTL_OK;
    const char *why = why_unreachable(&p);
    if (why && !q->force) {
        ctl_error("%s cannot be placed: %s (--force starts it all the same)", elf_path, why);
        return CTL_CANNOT_RUN;
    }
    if (why)
        ctl_error("warning: %s: %s", elf_path, why);
    warn_privileged(elf_path);
    return CTL_OK;
}

/* --- what will happen ---------------------------------------------------- */

static void join_arguments(char **argv, char *buf, size_t cap)
{
    size_t at = 0;
    buf[0] = '\0';
    for (int i = 1; argv[0] && argv[i] && at < cap; i++)
        at += (size_t)snprintf(buf + at, cap - at, "%s%s", i > 1 ? " " : "", argv[i]);
}

/* Whose memory "emulated" is: of the machine that we run on with all that we start (under QEMU), or
 * of one that only a program which is built for it has, and that does not exist yet. */
struct emulated {
    const char *what; /* NULL: none */
    const char *limit;
};

static struct emulated find_emulated(const struct hy_settings *s, uint64_t *dram)
{
    const char *preset = env_get("HYBRID_EMU_PRESET"), *limit = env_get("HYBRID_EMU_DRAM");

    if (s->pm.kind != HY_PM_EMULATED)
        return (struct emulated){0};
    if (emulator_open()) {
        uint64_t has = emulator_bytes(HY_DRAM);
        *dram = has ? has : *dram;
        return (struct emulated){"the emulated machine's, on which this runs",
                                 has ? "" : " (the emulated machine has no limit)"};
    }
    if (!(preset && *preset) && !(limit && *limit))
        return (struct emulated){0};
    return (struct emulated){
        "the emulated machine's (HYBRID_EMU_), if the program is built for it; else ordinary "
        "memory "
        "that is called PM",
        limit && *limit ? " here; on an emulated machine of what HYBRID_EMU_DRAM says" : " here"};
}

static void explain(const struct request *q, const char *elf_path, const struct hy_settings *s,
                    const struct topology *t, const struct ctl_pm *pm)
{
    static const char *const source[] = {"default", "profile", "environment"};
    char a[32], b[32], path[HY_PATH_MAX], value[HY_PATH_MAX + 16];
    uint64_t pm_nodes = 0;
    enum topo_why why;

    if (s->pm.kind == HY_PM_NODE)
        pm_nodes = s->pm.nodes;
    else if (s->pm.kind == HY_PM_AUTO)
        pm_nodes = topology_find_pm(t, &why);
    uint64_t dram = topology_bytes(t, topology_dram_mask(t, pm_nodes), false);
    const struct emulated emulated = find_emulated(s, &dram);

    fprintf(stderr, "program   %s%s%s\n", q->program,
            strcmp(q->program, elf_path) != 0 ? ", run by " : "",
            strcmp(q->program, elf_path) != 0 ? elf_path : "");
    fprintf(stderr, "library   %s\n", q->library_path);
    fprintf(stderr, "PM        %s\n", emulated.what ? emulated.what : pm->what);
    fprintf(stderr, "DRAM      %s of %s for this program%s\n",
            ctl_size(hy_amount_bytes(s->dram, dram), a, sizeof(a)), ctl_size(dram, b, sizeof(b)),
            emulated.what ? emulated.limit : "");
    if (strcmp(s->registry, "none") != 0) {
        registry_default_path(path, sizeof(path));
        fprintf(stderr, "shared    %s among the participants of %s\n",
                ctl_size(hy_amount_bytes(s->dram_shared, dram), a, sizeof(a)),
                strcmp(s->registry, "auto") == 0 ? path : s->registry);
    }
    for (int i = 0; i < OPT_COUNT; i++) {
        if (s->source[i] == HY_FROM_DEFAULT && i != OPT_POLICY && i != OPT_START)
            continue;
        options_format(s, i, value, sizeof(value));
        fprintf(stderr, "setting   %s=%s (%s)\n", options_info(i)->env, value,
                source[s->source[i]]);
    }
    if (!pm->usable || s->policy == HY_POLICY_OFF)
        fprintf(stderr, "outcome   passive: the library only passes calls through\n");
    else if (s->start > 0)
        fprintf(stderr, "outcome   memory is placed as soon as %s are in use\n",
                ctl_size(s->start, a, sizeof(a)));
    else
        fprintf(stderr, "outcome   memory is placed from the start\n");
}

static int check_settings(const struct request *q, const char *elf_path)
{
    static char args[4096];
    struct hy_settings s;
    struct topology t;
    struct ctl_pm pm;

    join_arguments(q->command, args, sizeof(args));
    if (ctl_load_settings(&s, elf_path, args) > 0)
        return CTL_USAGE;
    (void)topology_read("/sys", &t);
    ctl_find_pm(&s.pm, &t, &pm);
    if (pm.is_error) {
        ctl_error("HYBRID_PM: %s", pm.what);
        return CTL_USAGE;
    }
    if (q->explain || q->check)
        explain(q, elf_path, &s, &t, &pm);
    else if (!pm.usable && s.pm.kind == HY_PM_AUTO && s.policy != HY_POLICY_OFF && !q->quiet)
        ctl_error("note: no second memory here, so libhybrid only passes calls through "
                  "(hybridctl doctor says more; --pm emulated tries it out)");
    return CTL_OK;
}

int ctl_run(int argc, char **argv)
{
    struct request q = {0};
    char elf_path[PATH_MAX] = "";
    int r = parse(argc, argv, &q);
    if (r == CTL_OK)
        r = find_program(&q);
    if (r == CTL_OK)
        r = check_program(&q, elf_path);
    if (r == CTL_OK)
        r = ctl_find_library(q.library, q.library_path);
    if (r == CTL_OK)
        r = check_settings(&q, elf_path[0] ? elf_path : q.program);
    if (r == CTL_OK && !q.check)
        r = set_preload(&q);
    if (r != CTL_OK || q.check)
        return r;
    fflush(NULL);
    ctl_tell_filters();
    execvp(q.command[0], q.command);
    int error = errno;
    ctl_error("%s: %s", q.command[0], strerror(error));
    return error == ENOENT ? CTL_NOT_FOUND : CTL_CANNOT_RUN;
}
