/* SPDX-License-Identifier: BSD-2-Clause
 * Files that the user names for what we write (sys/os.h). A name in a folder where everybody
 * may write can lead anywhere: no symbolic link is followed, and no device is opened but
 * terminals and /dev/null. */
#include "sys/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sys/raw.h"

#define PATH_CAP 1152 /* HY_PATH_MAX and a suffix */

enum {
    MAJOR_MEM = 1,
    MINOR_NULL = 3,
    MAJOR_TTY = 4,
    MAJOR_CONSOLE = 5,
    MAJOR_PTS = 136,
    MAJOR_PTS_LAST = 143
};

enum kind { KIND_FILE, KIND_STREAM, KIND_SPECIAL };

static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n > 0 && s[n] == '\0';
}

/* A descriptor of this process by name: a link, but the kernel's own. */
static bool is_stream(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    for (size_t i = 0; i < HY_ARRAY_SIZE(folders); i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return is_number(path + strlen(folders[i]));
    return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0;
}

static bool may_open_device(dev_t d)
{
    unsigned m = major(d);
    return (m == MAJOR_MEM && minor(d) == MINOR_NULL) || m == MAJOR_TTY || m == MAJOR_CONSOLE ||
           (m >= MAJOR_PTS && m <= MAJOR_PTS_LAST);
}

/* What `path` is, or -errno: -ELOOP a symbolic link, -ENODEV a device, -EISDIR, -EINVAL. */
static int kind_of(const char *path, struct stat *st)
{
    int e = raw_stat(path, is_stream(path) ? 0 : AT_SYMLINK_NOFOLLOW, st);

    if (e == -ENOENT && !is_stream(path))
        return KIND_FILE; /* there is none yet */
    if (e != 0)
        return e;
    switch (st->st_mode & S_IFMT) {
    case S_IFREG:
        return is_stream(path) ? KIND_STREAM : KIND_FILE;
    case S_IFIFO:
        return KIND_SPECIAL;
    case S_IFCHR:
        return may_open_device(st->st_rdev) ? KIND_SPECIAL : -ENODEV;
    case S_IFBLK:
        return -ENODEV;
    case S_IFLNK:
        return -ELOOP;
    case S_IFDIR:
        return -EISDIR;
    default:
        return -EINVAL;
    }
}

/* Written to as it is, never replaced by a file. */
static int write_in_place(const char *path, const struct stat *was, const void *buf, size_t len)
{
    struct stat st;
    int follow = is_stream(path) ? 0 : O_NOFOLLOW;
    int fd = raw_open(path, O_WRONLY | O_APPEND | O_NONBLOCK | follow, 0);

    if (fd < 0)
        return fd;
    /* Somebody may have put another thing there since we looked. */
    bool same = raw_fstat(fd, &st) == 0 && st.st_dev == was->st_dev && st.st_ino == was->st_ino;
    int r = same ? os_write_all(fd, buf, len) : -ELOOP;
    os_close(fd);
    return r;
}

int os_write_file_atomic(const char *path, const void *buf, size_t len)
{
    char tmp[PATH_CAP];
    struct stat st;
    int kind = kind_of(path, &st);

    if (kind < 0)
        return kind;
    if (kind != KIND_FILE)
        return write_in_place(path, &st, buf, len);
    int fd = raw_create_temp(path, O_WRONLY, 0644, tmp, sizeof(tmp));
    if (fd < 0)
        return fd;
    int r = os_write_all(fd, buf, len);
    os_close(fd);
    if (r == 0) /* a link that was planted by now is replaced, not followed */
        r = (int)raw5(SYS_renameat2, AT_FDCWD, tmp, AT_FDCWD, path, 0);
    if (r != 0)
        raw_remove(tmp);
    return r;
}

int os_may_write_file(const char *path)
{
    char folder[PATH_CAP];
    struct stat st;
    int kind = kind_of(path, &st), r;

    if (kind != KIND_FILE)
        return HY_MIN(kind, 0);
    r = raw_folder_of(path, folder, sizeof(folder));
    return r != 0 ? r : (int)raw3(SYS_faccessat, AT_FDCWD, folder, W_OK | X_OK);
}

bool os_is_special_file(const char *path)
{
    struct stat st;
    int kind = kind_of(path, &st);
    return kind == KIND_STREAM || kind == KIND_SPECIAL;
}

const char *os_output_problem(int e)
{
    switch (e) {
    case -ELOOP:
        return "it is a symbolic link; those are not followed";
    case -ENODEV:
        return "it is a device";
    case -EISDIR:
        return "it is a directory";
    default:
        return os_error_name(e);
    }
}

void os_output_name(const char *spec, char *path, size_t cap)
{
    size_t n = 0;
    for (; *spec && n + 24 < cap; spec++) {
        if (spec[0] == '%' && spec[1] == 'p') {
            n += (size_t)snprintf(path + n, cap - n, "%d", os_pid());
            spec++;
        } else {
            path[n++] = *spec;
        }
    }
    path[n] = '\0';
}

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

/* --- files by which the kernel is told something ---------------------------------------- */

bool os_may_write_to(const char *path)
{
    return raw3(SYS_faccessat, AT_FDCWD, path, W_OK) == 0;
}

int os_write_to(const char *path, const char *text)
{
    size_t len = strlen(text);
    long n;
    int fd = raw_open(path, O_WRONLY | O_NONBLOCK, 0);

    if (fd < 0)
        return fd;
    n = raw3(SYS_write, fd, text, len);
    os_close(fd);
    return n < 0 ? (int)n : n == (long)len ? 0 : -EIO;
}
