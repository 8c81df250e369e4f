/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings/profile_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "sys/dl.h"
#include "sys/os.h"

static bool is_in(const char *dir, size_t n, const char *name, char *path, size_t cap)
{
    return n > 0 && (size_t)snprintf(path, cap, "%.*s/%s.ini", (int)n, dir, name) < cap &&
           os_file_exists(path);
}

/* Where this was installed, and where it lies by now: PREFIX/lib/TRIPLET/libhybrid.so or
 * PREFIX/bin/hybridctl beside PREFIX/share. */
static bool is_installed(const char *name, char *path, size_t cap)
{
    static const char below[] = "/libhybrid/profiles",
                      installed[] = HY_DATADIR "/libhybrid/profiles";
    char own[HY_PATH_MAX], dir[2 * HY_PATH_MAX];
    struct dl_object o;

    if (is_in(installed, sizeof(installed) - 1, name, path, cap))
        return true;
    if (dl_find((const void *)(uintptr_t)profile_locate, &o) != 0)
        return false;
    if (o.name[0] == '/' && strlen(o.name) < sizeof(own))
        memcpy(own, o.name, strlen(o.name) + 1);
    else if (os_exe_path(own, sizeof(own)) != 0)
        return false;
    for (int up = 0; up < 4 && strchr(own, '/'); up++) {
        *strrchr(own, '/') = '\0';
        int n = snprintf(dir, sizeof(dir), "%s/share%s", own, below);
        if (up > 0 && is_in(dir, (size_t)n, name, path, cap))
            return true;
    }
    return false;
}

int profile_locate(const struct hy_settings *s, char *path, size_t cap)
{
    if (strchr(s->profile, '/') || (strchr(s->profile, '.') && os_file_exists(s->profile)))
        return (size_t)snprintf(path, cap, "%s", s->profile) < cap && os_file_exists(path)
                   ? 0
                   : -ENOENT;
    for (const char *dir = s->profile_path; *dir;) {
        size_t n = strcspn(dir, ":");
        if (is_in(dir, n, s->profile, path, cap))
            return 0;
        dir += n + (dir[n] == ':');
    }
    bool by_default = s->source[OPT_PROFILE_PATH] == HY_FROM_DEFAULT;
    return by_default && is_installed(s->profile, path, cap) ? 0 : -ENOENT;
}
