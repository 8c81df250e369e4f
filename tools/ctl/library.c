/* SPDX-License-Identifier: BSD-2-Clause
 * Where the parts of libhybrid lie: the library, and the scripts behind subcommands. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/env.h"
#include "sys/os.h"

/* Path of a file given from the directory of this program. */
static int beside_us(const char *file, char ret[PATH_MAX])
{
    char exe[PATH_MAX];
    int r = os_exe_path(exe, sizeof(exe));
    if (r < 0)
        return r;
    *strrchr(exe, '/') = '\0';
    return snprintf(ret, PATH_MAX, "%s/%s", exe, file) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int check_library(const char *path, char *ret)
{
    struct ctl_program so;
    char real[PATH_MAX];
    if (!realpath(path, real))
        return -errno;
    int r = ctl_inspect_program(real, &so);
    if (r == 0 && !so.is_elf)
        r = -ENOEXEC;
    if (r == 0)
        memcpy(ret, real, sizeof(real));
    return r;
}

int ctl_find_library(const char *asked, char ret[PATH_MAX])
{
    char beside[PATH_MAX];
    if (!asked)
        asked = env_get("HYBRIDCTL_LIBRARY");
    if (asked && *asked) {
        int r = check_library(asked, ret);
        if (r == 0)
            return CTL_OK;
        ctl_error("%s cannot be preloaded: %s", asked,
                  r == -ENOEXEC ? "it is no shared library" : strerror(-r));
        return CTL_FAILED;
    }
    if (beside_us("../shim/libhybrid.so", beside) == 0 && check_library(beside, ret) == 0)
        return CTL_OK;
    if (check_library(HY_LIBDIR "/libhybrid.so", ret) == 0)
        return CTL_OK;
    ctl_error("libhybrid.so is neither beside this build nor in " HY_LIBDIR
              "; name it with --library");
    return CTL_FAILED;
}

int ctl_run_script(const char *name, const char *library, int argc, char **argv)
{
    char script[PATH_MAX];
    char **args = calloc((size_t)argc + 5, sizeof(*args));
    int n = 0;

    if (!args)
        return CTL_FAILED;
    if (beside_us(name, script) < 0 || access(script, R_OK) != 0)
        snprintf(script, sizeof(script), HY_LIBEXECDIR "/libhybrid/%s", name);
    if (access(script, R_OK) != 0) {
        ctl_error("%s is neither beside this program nor in " HY_LIBEXECDIR "/libhybrid", name);
        return CTL_FAILED;
    }
    /* Debian's own, which knows the packages that it comes with. */
    args[n++] = "/usr/bin/python3";
    args[n++] = script;
    if (library) {
        args[n++] = "--library";
        args[n++] = (char *)library;
    }
    for (int i = 1; i < argc; i++)
        args[n++] = argv[i];
    if (library)
        ctl_tell_filters();
    execv(args[0], args);
    ctl_error("%s: %s", args[0], strerror(errno));
    return CTL_FAILED;
}

int ctl_tune(int argc, char **argv)
{
    char library[PATH_MAX];
    int r = ctl_find_library(NULL, library);
    return r == CTL_OK ? ctl_run_script("tune.py", library, argc, argv) : r;
}

/* It starts each job by `hybridctl run`. Python prints a traceback when it is interrupted before
 * the script has a word in it, so the script lets SIGINT in. */
int ctl_batch(int argc, char **argv)
{
    char library[PATH_MAX], exe[PATH_MAX];
    char **args = calloc((size_t)argc + 3, sizeof(*args));
    int r = ctl_find_library(NULL, library);

    if (!args || os_exe_path(exe, sizeof(exe)) < 0)
        return CTL_FAILED;
    if (r != CTL_OK)
        return r;
    args[0] = argv[0];
    args[1] = "--ctl";
    args[2] = exe;
    memcpy(&args[3], &argv[1], (size_t)(argc - 1) * sizeof(*args));
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &interrupt, NULL);
    return ctl_run_script("batch.py", library, argc + 2, args);
}

int ctl_calibrate(int argc, char **argv)
{
    return ctl_run_script("calibrate.py", NULL, argc, argv);
}

int ctl_report(int argc, char **argv)
{
    return ctl_run_script("report.py", NULL, argc, argv);
}
