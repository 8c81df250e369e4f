/* SPDX-License-Identifier: BSD-2-Clause
 * Parts of files that processes share, and locks on them (sys/os.h). */
#include "sys/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "sys/raw.h"

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

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

int os_kin_open(int *ret_fd)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    long fd = raw2(SYS_memfd_create, "libhybrid", flags | MFD_NOEXEC_SEAL);
    if (fd == -EINVAL)
        fd = raw2(SYS_memfd_create, "libhybrid", flags);
    if (fd < 0)
        return (int)fd;
    *ret_fd = raw_keep((int)fd);
    return 0;
}

/* Never accessed, so it is no memory, not under mlockall either. */
int os_kin_page(int fd, void **ret_page)
{
    long r = raw6(SYS_mmap, NULL, HY_PAGE, PROT_NONE, MAP_SHARED, fd, 0);
    if (r < 0 && r > -4096)
        return (int)r;
    *ret_page = (void *)r;
    return 0;
}

/* The kernel refuses this seal as long as any shared mapping could be written to. */
bool os_kin_gone(int fd)
{
    return raw3(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
}
