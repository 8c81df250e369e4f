/* SPDX-License-Identifier: BSD-2-Clause
 * Names of files (sys/os.h). */
#include "sys/os.h"

#include <string.h>

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
