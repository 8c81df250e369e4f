/* SPDX-License-Identifier: BSD-2-Clause
 * Names of files (sys/os.h). */
#include "sys/os.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "sys/raw.h"

int os_absolute_path(const char *path, char *buf, size_t cap)
{
    size_t at = 0, len = strlen(path);

    if (path[0] != '/') {
        long n = raw2(SYS_getcwd, buf, cap); /* with the NUL; "(unreachable)/..." is none of ours */
        if (n < 0)
            return (int)n;
        if (buf[0] != '/')
            return -ENOENT;
        at = (size_t)n - 1;
        if (at > 1 && at + 1 < cap)
            buf[at++] = '/';
    }
    if (len >= cap - at)
        return -ENAMETOOLONG;
    memcpy(buf + at, path, len + 1);
    return 0;
}

int os_may_write_file(const char *path)
{
    char folder[1152]; /* HY_PATH_MAX and more */
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;

    if (os_is_special_file(path))
        return 0;
    if (len >= sizeof(folder))
        return -ENAMETOOLONG;
    memcpy(folder, len ? path : ".", len ? len : 2);
    if (len)
        folder[len] = '\0';
    return (int)raw3(SYS_faccessat, AT_FDCWD, folder, W_OK | X_OK);
}

bool os_is_special_file(const char *path)
{
    struct stat st;
    int saved = errno;
    bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    errno = saved;
    return special;
}
