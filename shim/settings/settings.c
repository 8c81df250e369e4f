/* SPDX-License-Identifier: BSD-2-Clause
 * Environment and profile, read once. What is wrong is told here, one line
 * each; under HYBRID_STRICT=1 the constructor ends the program for it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "core/state.h"
#include "settings/profile_file.h"
#include "settings/settings.h"
#include "sys/env.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/usage.h"
#include "sys/walk/modules.h"

struct runtime_config hy_config;

/* A compiler starts many processes, all with the same settings: the first one tells what is
 * wrong with them. Who ends for it tells it, too. A daemon that has become another user, or has
 * left for another root, finds little of what it was started with, and nobody can mend that. */
void settings_warn(const char *message)
{
    if (hy_config.set.strict || !(env_parent_has_same() || env_has_moved()))
        log_warn("%s", message);
}

static void on_error(void *ctx, const char *message)
{
    (void)ctx;
    hy_config.errors++;
    settings_warn(message);
}

/* Hints of options_check are written, but are no errors. */
static void on_hint(void *ctx, const char *message)
{
    (void)ctx;
    settings_warn(message);
}

void settings_error_once(enum hy_opt_id id, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    if (hy_config.told_bad[id])
        return;
    hy_config.told_bad[id] = true;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    on_error(NULL, line);
}

#define CANNOT_WRITE "%s=%s cannot be written (%s)"

void settings_cannot_write(enum hy_opt_id id, const char *path, int e)
{
    if (!hy_config.told_bad[id])
        log_warn(CANNOT_WRITE, options_info(id)->env, path, os_output_problem(e));
    hy_config.told_bad[id] = true;
}

bool settings_nodes_exist(const struct topology *t, uint64_t nodes)
{
    int bad;

    if (topology_check_mask(t, nodes, &bad) == 0)
        return true;
    settings_error_once(
        OPT_PM, "HYBRID_PM: node %d does not exist or has no memory here; nothing is placed", bad);
    return false;
}

/* --- what can be known of the named places without touching them ----------------- */

static void check_pm(const struct hy_pm_spec *pm)
{
    char inside[2 * HY_PATH_MAX];
    int e;

    if (pm->kind == HY_PM_FILE) {
        (void)snprintf(inside, sizeof(inside), "%s/x", pm->dir);
        if ((e = os_may_write_file(inside)) != 0)
            settings_error_once(
                OPT_PM, "HYBRID_PM=file:%s: no file can be made there (%s); nothing is placed",
                pm->dir, os_error_name(e));
    } else if (pm->kind == HY_PM_NODE) {
        (void)topology_read("/sys", &hy_machine.topo);
        (void)settings_nodes_exist(&hy_machine.topo, pm->nodes);
    }
}

/* A relative name means another file in each process that changes its folder. */
static void check_output(enum hy_opt_id id, const char *spec)
{
    char path[HY_PATH_MAX + 32];
    int e;

    if (spec[0] != '/')
        return;
    os_output_name(spec, path, sizeof(path));
    if ((e = os_may_write_file(path)) != 0)
        settings_error_once(id, CANNOT_WRITE, options_info(id)->env, path, os_output_problem(e));
}

/* Told now, not when a process has grown: most never do, and their user believes all is well. */
static void check_places(const struct hy_settings *s)
{
    int e;

    check_output(OPT_STATS, s->stats);
    check_output(OPT_TRACE, s->trace);
    check_output(OPT_RECORD, s->record);
    if (s->policy == HY_POLICY_OFF || s->pm.kind == HY_PM_NONE)
        return;
    if (s->source[OPT_PM] != HY_FROM_DEFAULT)
        check_pm(&s->pm);
    if (s->registry[0] == '/' && !os_file_exists(s->registry) &&
        (e = os_may_write_file(s->registry)) != 0)
        settings_error_once(
            OPT_REGISTRY, "registry %s cannot be used (%s); this process places memory on its own",
            s->registry, os_output_problem(e));
    if (s->machine[0] == '/' && !os_file_exists(s->machine))
        settings_error_once(OPT_MACHINE, "HYBRID_MACHINE=%s cannot be read (ENOENT)", s->machine);
}

/* What says which profile comes first, so that a message about a later variable
 * can say what is used instead of it. */
static bool finds_profile(enum hy_opt_id id)
{
    return id == OPT_PROFILE || id == OPT_PROFILE_PATH || id == OPT_VERBOSE;
}

static void take_early(const char *name, size_t len, const char *value, void *ctx)
{
    enum hy_opt_id id = options_by_env(name, len);
    *(bool *)ctx = true;
    if (finds_profile(id))
        (void)options_set(&hy_config.set, id, value, HY_FROM_ENV, on_error, NULL);
}

static void take_rest(const char *name, size_t len, const char *value, void *ctx)
{
    enum hy_opt_id id = options_by_env(name, len);
    (void)ctx;
    if (id == OPT_COUNT)
        options_unknown_env(name, len, on_error, NULL);
    else if (!finds_profile(id))
        (void)options_set(&hy_config.set, id, value, HY_FROM_ENV, on_error, NULL);
}

/* --- the profile ---------------------------------------------------------------- */

static struct {
    char exe[HY_PATH_MAX], args[HY_PATH_MAX];
    uint8_t build_id[BUILD_ID_MAX];
    struct profile_subject who;
} self;

static void describe_self(void)
{
    size_t len = 0;
    if (os_exe_path(self.exe, sizeof(self.exe)))
        self.exe[0] = '\0';
    if (os_read_file("/proc/self/cmdline", self.args, sizeof(self.args), &len))
        len = 0;
    for (size_t i = 0; i + 1 < len; i++)
        if (self.args[i] == '\0')
            self.args[i] = ' ';
    self.who = (struct profile_subject){
        .exe_path = self.exe,
        .args = self.args,
        .build_id = self.build_id,
        .build_id_len = module_exe_build_id(self.build_id),
    };
}

static const char *quoted(const char *text)
{
    static char buf[TEXT_QUOTE_CAP]; /* the constructor's thread only */
    text_quote(text, strlen(text), buf, sizeof(buf));
    return buf;
}

/* 0 when the file was there and is a profile. */
static int read_profile(const char *file)
{
    const void *text;
    void *sites;
    size_t len;
    int e = os_map_anon(PROFILE_MAX_SITES * sizeof(struct profile_site), &sites);
    if (e == 0 && (e = os_map_copy(file, PROFILE_MAX_BYTES, false, &text, &len)) != 0)
        os_unmap(sites, PROFILE_MAX_SITES * sizeof(struct profile_site));
    if (e) {
        settings_error_once(OPT_PROFILE,
                            "HYBRID_PROFILE: %s cannot be read (%s); going on without a profile",
                            quoted(file), os_error_name(e));
        return e;
    }
    hy_config.profile.sites = sites;
    e = profile_parse(text, len, file, &hy_config.profile, on_error, NULL);
    os_unmap(text, len);
    if (e == 0)
        (void)snprintf(hy_config.profile_file, sizeof(hy_config.profile_file), "%s", file);
    return e;
}

static void load_profile(void)
{
    char file[HY_PATH_MAX];
    const char *name = hy_config.set.profile;

    if (profile_locate(&hy_config.set, file, sizeof(file))) {
        if (strchr(name, '/'))
            settings_error_once(
                OPT_PROFILE, "HYBRID_PROFILE=%s: there is no such file; going on without a profile",
                quoted(name));
        else
            settings_error_once(
                OPT_PROFILE,
                "HYBRID_PROFILE=%s: there is no such .ini file in %s; going on without "
                "a profile",
                quoted(name), hy_config.set.profile_path);
        return;
    }
    if (read_profile(file))
        return;
    describe_self();
    switch (profile_matches(&hy_config.profile, &self.who)) {
    case PROFILE_OTHER_PROGRAM:
        log_info("profile %s is for another program; not used", file);
        hy_config.profile.n_sites = 0;
        return;
    case PROFILE_OTHER_BUILD:
        log_warn("profile %s was made of another build of this program; its call sites are used "
                 "only where they still fit",
                 file);
        break;
    case PROFILE_FITS:
        break;
    }
    hy_config.have_profile = true;
    for (unsigned i = 0; i < hy_config.profile.n_options; i++)
        (void)options_set(&hy_config.set, hy_config.profile.option[i].id,
                          hy_config.profile.option[i].value, HY_FROM_PROFILE, on_error, NULL);
}

enum hy_class settings_class(void)
{
    if (hy_config.set.cls != HY_CLASS_UNKNOWN)
        return hy_config.set.cls;
    return hy_config.have_profile ? hy_config.profile.cls : HY_CLASS_UNKNOWN;
}

bool settings_load(void)
{
    bool any = false;
    options_begin(&hy_config.set);
    env_each("HYBRID_", take_early, &any);
    log_set_verbose(hy_config.set.verbose);
    if (hy_config.set.profile[0])
        load_profile();
    if (!any)
        return false;
    env_each("HYBRID_", take_rest, NULL);
    if (hy_config.set.seccomp > 0) /* a page less to touch at the start of every program */
        os_seccomp_trust((unsigned)hy_config.set.seccomp);
    hy_config.errors += (unsigned)options_check(&hy_config.set, on_hint, NULL);
    check_places(&hy_config.set);
    return true;
}

void settings_echo(void)
{
    static const char *const from[] = {"default", "profile", "environment"};
    char value[HY_PATH_MAX];
    if (hy_config.set.verbose < 1)
        return;
    for (int id = 0; id < OPT_COUNT; id++) {
        options_format(&hy_config.set, (enum hy_opt_id)id, value, sizeof(value));
        log_info("%s=%s (%s)", options_info((enum hy_opt_id)id)->env, value,
                 from[hy_config.set.source[id]]);
    }
    if (hy_config.profile_file[0])
        log_info("profile %s: %u call sites%s", hy_config.profile_file, hy_config.profile.n_sites,
                 hy_config.have_profile ? "" : ", not for this program");
}
