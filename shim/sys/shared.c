/* SPDX-License-Identifier: BSD-2-Clause
 * Parts of files that processes share, and locks on them (sys/os.h). */
#include "sys/os.h"

#include <errno.h>
#include <fcntl.h>

#include "sys/raw.h"

int os_read_at(int fd, uint64_t offset, void *buf, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        long r = raw4(SYS_pread64, fd, (char *)buf + at, bytes - at, offset + at);
        if (r == -EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? (int)r : -ENODATA;
        at += (size_t)r;
    }
    return 0;
}

int os_write_at(int fd, uint64_t offset, const void *buf, size_t bytes)
{
    struct raw_quiet q;
    long r;

    raw_quiet_begin(&q); /* over RLIMIT_FSIZE: SIGXFSZ */
    do
        r = raw4(SYS_pwrite64, fd, buf, bytes, offset);
    while (r == -EINTR);
    raw_quiet_end(&q, r < 0);
    return r < 0 ? (int)r : (size_t)r == bytes ? 0 : -ENOSPC;
}

/* Locks of the open file (F_OFD), not of the process: those go when the program closes any
 * other descriptor of the same file. */
static int lock_call(int fd, int cmd, short type, uint64_t offset, uint64_t bytes,
                     struct flock *ret)
{
    long r;

    *ret = (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)bytes};
    do
        r = raw3(SYS_fcntl, fd, cmd, ret);
    while (r == -EINTR);
    return r == -EACCES ? -EAGAIN : (int)r;
}

int os_lock_bytes(int fd, uint64_t offset, uint64_t bytes)
{
    struct flock l;
    return lock_call(fd, F_OFD_SETLK, F_WRLCK, offset, bytes, &l);
}

int os_unlock_bytes(int fd, uint64_t offset, uint64_t bytes)
{
    struct flock l;
    return lock_call(fd, F_OFD_SETLK, F_UNLCK, offset, bytes, &l);
}

int os_byte_is_locked(int fd, uint64_t offset)
{
    struct flock l;
    int r = lock_call(fd, F_OFD_GETLK, F_WRLCK, offset, 1, &l);
    return r != 0 ? r : l.l_type != F_UNLCK;
}
