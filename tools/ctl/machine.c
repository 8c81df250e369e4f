/* SPDX-License-Identifier: BSD-2-Clause
 * The settings and the memories that a program started here would meet. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "classify/figures.h"
#include "settings/profile_file.h"
#include "settings/rules/profile.h"
#include "sys/env.h"
#include "sys/os.h"

const char *ctl_node_list(uint64_t mask, char *buf, size_t cap)
{
    size_t at = 0;
    buf[0] = '\0';
    for (unsigned i = 0; i < TOPO_MAX_NODES && at < cap; i++) {
        unsigned last = i;
        if (!(mask >> i & 1))
            continue;
        while (last + 1 < TOPO_MAX_NODES && mask >> (last + 1) & 1)
            last++;
        at += (size_t)snprintf(buf + at, cap - at, last > i ? "%s%u-%u" : "%s%u", at ? "," : "", i,
                               last);
        i = last;
    }
    return buf;
}

static void find_numa(uint64_t mask, const char *why, const struct topology *t, struct ctl_pm *ret)
{
    char nodes[128], size[32];
    ret->usable = true;
    snprintf(ret->what, sizeof(ret->what), "NUMA node %s, %s%s%s",
             ctl_node_list(mask, nodes, sizeof(nodes)),
             ctl_size(topology_bytes(t, mask, false), size, sizeof(size)), why ? ": " : "",
             why ? why : " (named by the user)");
}

static void find_nodes(const struct hy_pm_spec *spec, const struct topology *t, struct ctl_pm *ret)
{
    int bad;
    char nodes[128];
    ret->is_error = true;
    if (topology_check_mask(t, spec->nodes, &bad) < 0) {
        snprintf(ret->what, sizeof(ret->what),
                 "node %d does not exist or has no memory; nodes with memory: %s", bad,
                 ctl_node_list(topology_dram_mask(t, 0), nodes, sizeof(nodes)));
    } else if (topology_dram_mask(t, spec->nodes) == 0) {
        snprintf(ret->what, sizeof(ret->what),
                 "node %s is all memory there is; none is left "
                 "to be DRAM",
                 ctl_node_list(spec->nodes, nodes, sizeof(nodes)));
    } else {
        ret->is_error = false;
        find_numa(spec->nodes, NULL, t, ret);
    }
}

static void find_directory(const char *dir, struct ctl_pm *ret)
{
    struct stat st;
    struct statfs fs;
    char size[32];
    int fd;

    ret->is_error = true;
    int r = stat(dir, &st) < 0 ? -errno : !S_ISDIR(st.st_mode) ? -ENOTDIR : 0;
    if (r == 0) /* permission bits do not tell of read-only mounts: try it */
        r = os_temp_file(dir, HY_MIB, &fd);
    if (r < 0) {
        snprintf(ret->what, sizeof(ret->what), "files cannot be made in %s: %s", dir, strerror(-r));
        return;
    }
    os_close(fd);
    ret->is_error = false;
    ret->usable = true;
    uint64_t room = statfs(dir, &fs) == 0 ? (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize : 0;
    snprintf(ret->what, sizeof(ret->what), "files in %s, %s free", dir,
             ctl_size(room, size, sizeof(size)));
}

void ctl_find_pm(const struct hy_pm_spec *spec, const struct topology *t, struct ctl_pm *ret)
{
    enum topo_why why;
    uint64_t mask;
    char size[32];

    memset(ret, 0, sizeof(*ret));
    switch (spec->kind) {
    case HY_PM_AUTO:
        mask = topology_find_pm(t, &why);
        if (mask)
            find_numa(mask, topo_why_text(why), t, ret);
        else
            snprintf(ret->what, sizeof(ret->what),
                     "none: no NUMA node here is slower than DRAM or without CPUs");
        break;
    case HY_PM_NONE:
        snprintf(ret->what, sizeof(ret->what), "none, as set");
        break;
    case HY_PM_NODE:
        find_nodes(spec, t, ret);
        break;
    case HY_PM_FILE:
        find_directory(spec->dir, ret);
        break;
    case HY_PM_EMULATED:
        ret->usable = true;
        snprintf(ret->what, sizeof(ret->what), "ordinary memory that is called PM, %s",
                 spec->bytes ? ctl_size(spec->bytes, size, sizeof(size)) : "as much as DRAM");
        break;
    }
}

/* --- settings ------------------------------------------------------------ */

struct problems {
    struct hy_settings *settings;
    int errors;
};

static void tell_error(void *ctx, const char *message)
{
    struct problems *p = ctx;
    p->errors++;
    ctl_error("%s", message);
}

/* options_check hints as well as it objects, and counts what it objects to. */
static void tell_hint(void *ctx, const char *message)
{
    (void)ctx;
    ctl_error("%s", message);
}

static void take_variable(const char *name, size_t len, const char *value, void *ctx)
{
    struct problems *p = ctx;
    enum hy_opt_id id = options_by_env(name, len);
    if (id == OPT_COUNT) /* not ours to refuse: the program may know it */
        options_unknown_env(name, len, tell_hint, NULL);
    else
        (void)options_set(p->settings, id, value, HY_FROM_ENV, tell_error, p);
}

static void check_fit(const struct profile *p, const char *exe_path, const char *args,
                      const char *file)
{
    struct ctl_program program;
    struct profile_subject who = {.exe_path = exe_path, .args = args};
    if (ctl_inspect_program(exe_path, &program) == 0) {
        who.build_id = program.build_id;
        who.build_id_len = program.build_id_len;
    }
    enum profile_fit fit = profile_matches(p, &who);
    if (fit == PROFILE_OTHER_PROGRAM)
        ctl_error("note: the profile %s was made for another program than %s", file, exe_path);
    else if (fit == PROFILE_OTHER_BUILD)
        ctl_error("note: the profile %s was made for another build of %s", file, exe_path);
}

static void load_profile(struct problems *problems, const char *exe_path, const char *args)
{
    struct hy_settings *s = problems->settings;
    char path[2 * HY_PATH_MAX];
    const void *text;
    size_t len;

    if (profile_locate(s, path, sizeof(path)) < 0) {
        problems->errors++;
        if (strchr(s->profile, '/'))
            ctl_error("the profile %s cannot be read", s->profile);
        else
            ctl_error("there is no %s.ini in %s", s->profile, s->profile_path);
        return;
    }
    int r = os_map_copy(path, PROFILE_MAX_BYTES, false, &text, &len);
    if (r < 0) {
        problems->errors++;
        ctl_error("the profile %s cannot be read: %s", path, strerror(-r));
        return;
    }
    struct profile *p = calloc(1, sizeof(*p));
    struct profile_site *sites = calloc(PROFILE_MAX_SITES, sizeof(*sites));
    if (p && sites) {
        p->sites = sites;
        if (profile_parse(text, len, path, p, tell_error, problems) == 0) {
            for (unsigned i = 0; i < p->n_options; i++)
                (void)options_set(s, p->option[i].id, p->option[i].value, HY_FROM_PROFILE,
                                  tell_error, problems);
            if (exe_path)
                check_fit(p, exe_path, args, path);
            if (p->cls != HY_CLASS_UNKNOWN && s->source[OPT_CLASS] == HY_FROM_DEFAULT) {
                s->cls = p->cls;
                s->source[OPT_CLASS] = HY_FROM_PROFILE;
            }
        }
    }
    free(sites);
    free(p);
    (void)os_unmap(text, len);
}

static int check_machine_file(const char *path)
{
    struct machine_figures f;
    int r = figures_read(path, false, &f, tell_hint, NULL);

    if (r == -EBADMSG)
        ctl_error("--machine: %s is no machine file (hybridctl calibrate makes one)", path);
    else if (r < 0)
        ctl_error("--machine: %s cannot be read: %s", path, strerror(-r));
    return r < 0 ? CTL_USAGE : CTL_OK;
}

int ctl_machine_option(const char *name, char ret[PATH_MAX])
{
    struct machine_figures f;
    char names[160] = "";
    size_t at = 0;
    if (strchr(name, '/')) {
        if (!realpath(name, ret)) {
            ctl_error("--machine: %s cannot be read: %s", name, strerror(errno));
            return CTL_USAGE;
        }
        return check_machine_file(ret);
    }
    if (strlen(name) < PATH_MAX && (strcmp(name, "auto") == 0 || figures_default(name, &f) == 0)) {
        strcpy(ret, name);
        return CTL_OK;
    }
    for (size_t i = 0; figures_name(i) && at < sizeof(names); i++)
        at += (size_t)snprintf(names + at, sizeof(names) - at, "%s, ", figures_name(i));
    ctl_error("--machine: '%s' is not known; allowed: auto, %sor a machine file with a slash in "
              "its path",
              name, names);
    return CTL_USAGE;
}

int ctl_load_settings(struct hy_settings *s, const char *exe_path, const char *args)
{
    struct problems problems = {.settings = s};
    options_defaults(s);
    env_each("HYBRID_", take_variable, &problems);
    if (s->profile[0] && strcmp(s->profile, "none") != 0)
        load_profile(&problems, exe_path, args);
    return problems.errors + options_check(s, tell_hint, NULL);
}
