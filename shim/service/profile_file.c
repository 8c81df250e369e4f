/* SPDX-License-Identifier: BSD-2-Clause */
#include "service/profile_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sys/os.h"

int profile_locate(const struct hy_settings *s, char *path, size_t cap)
{
    if (strchr(s->profile, '/'))
        return (size_t)snprintf(path, cap, "%s", s->profile) < cap && os_file_exists(path)
                   ? 0
                   : -ENOENT;
    for (const char *dir = s->profile_path; *dir;) {
        size_t n = strcspn(dir, ":");
        if (n && (size_t)snprintf(path, cap, "%.*s/%s.ini", (int)n, dir, s->profile) < cap &&
            os_file_exists(path))
            return 0;
        dir += n + (dir[n] == ':');
    }
    return -ENOENT;
}
