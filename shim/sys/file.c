/* SPDX-License-Identifier: BSD-2-Clause
 * Files. */
#include "sys/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "sys/raw.h"

#define PATH_CAP 1152 /* HY_PATH_MAX and a suffix; small for the sake of small stacks */

/* --- the signals that writing raises ---------------------------------------- */

#define SIGBIT(sig)   (1ul << ((sig)-1))
#define QUIET_SIGNALS (SIGBIT(SIGPIPE) | SIGBIT(SIGXFSZ) | SIGBIT(SIGTTOU))
_Static_assert(sizeof(unsigned long) == 8, "one word holds the kernel's signal set");

/* What is pending is asked only where the program blocks such a signal itself: elsewhere none
 * can be. Filters of sandboxes often know no rt_sigpending. */
void raw_quiet_begin(struct raw_quiet *q)
{
    unsigned long block = QUIET_SIGNALS;
    q->pending_before = 0;
    raw4(SYS_rt_sigprocmask, SIG_BLOCK, &block, &q->old_mask, sizeof(block));
    if (q->old_mask & QUIET_SIGNALS)
        raw2(SYS_rt_sigpending, &q->pending_before, sizeof(block));
}

/* `failed`: the call between returned an error, as one that raises these three does. */
void raw_quiet_end(const struct raw_quiet *q, bool failed)
{
    unsigned long ours = failed ? QUIET_SIGNALS & ~q->pending_before : 0;
    struct timespec zero = {0, 0};
    /* They are raised at the calling thread: take them back. */
    while (ours && raw4(SYS_rt_sigtimedwait, &ours, NULL, &zero, sizeof(ours)) > 0)
        ;
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, &q->old_mask, NULL, sizeof(q->old_mask));
}

/* --- files -------------------------------------------------------------- */

void os_close(int fd)
{
    if (fd >= 0)
        (void)raw1(SYS_close, fd);
}

/* `fd` on a number of at least `min`; the old number is closed in any case. */
static int move_fd(int fd, int min)
{
    long up = raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, min);
    os_close(fd);
    return (int)up;
}

int raw_open(const char *path, int flags, unsigned mode)
{
    long fd;
    do
        fd = raw4(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOCTTY, mode);
    while (fd == -EINTR);
    return fd >= 0 && fd <= 2 ? move_fd((int)fd, 3) : (int)fd;
}

int raw_keep(int fd)
{
    long high = -EINVAL;
    for (int min = 200; fd >= 0 && high == -EINVAL && min > fd;
         min /= 2) /* RLIMIT_NOFILE may be lower */
        high = raw3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, min);
    if (high >= 0)
        os_close(fd);
    return high >= 0 ? (int)high : fd;
}

bool os_file_exists(const char *path)
{
    return raw4(SYS_faccessat, AT_FDCWD, path, F_OK, 0) == 0;
}

int os_file_id(int fd, struct os_file_id *ret)
{
    struct stat st;
    int r = raw_fstat(fd, &st);
    if (r == 0)
        *ret = (struct os_file_id){(uint64_t)st.st_dev, (uint64_t)st.st_ino};
    return r;
}

bool os_file_is(int fd, const struct os_file_id *id)
{
    struct os_file_id now;
    return fd >= 0 && os_file_id(fd, &now) == 0 && now.dev == id->dev && now.ino == id->ino;
}

static int set_size(int fd, uint64_t bytes)
{
    struct raw_quiet q;
    raw_quiet_begin(&q); /* over RLIMIT_FSIZE: EFBIG and SIGXFSZ */
    int r = (int)raw2(SYS_ftruncate, fd, bytes);
    raw_quiet_end(&q, r < 0);
    return r;
}

static int do_fallocate(int fd, int mode, uint64_t offset, uint64_t bytes)
{
    struct raw_quiet q;
    long r;
    raw_quiet_begin(&q);
    do
        r = raw4(SYS_fallocate, fd, mode, offset, bytes);
    while (r == -EINTR);
    raw_quiet_end(&q, r < 0);
    return (int)r;
}

int os_file_punch(int fd, uint64_t offset, uint64_t bytes)
{
    return do_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

bool os_file_maybe_dax(int fd)
{
    struct statx is;
    long r = raw5(SYS_statx, fd, "", AT_EMPTY_PATH, 0, &is);
    return r != 0 || !(is.stx_attributes_mask & STATX_ATTR_DAX) ||
           (is.stx_attributes & STATX_ATTR_DAX);
}

/* A request that the file system cannot serve would fill it before it is refused, and others that
 * write there would fail meanwhile. Asked for what takes long in any case. */
#define ASKED HY_GIB

static bool is_no_room(int fd, uint64_t bytes)
{
    struct statfs is;
    return bytes >= ASKED && raw2(SYS_fstatfs, fd, &is) == 0 &&
           bytes / (uint64_t)is.f_bsize > (uint64_t)is.f_bfree;
}

int os_file_allocate(int fd, uint64_t offset, uint64_t bytes)
{
    return is_no_room(fd, bytes) ? -ENOSPC : do_fallocate(fd, 0, offset, bytes);
}

/* Up to `cap` bytes; result: bytes read or -errno. */
static long read_full(int fd, void *buf, size_t cap)
{
    size_t len = 0;
    while (len < cap) {
        long r = raw3(SYS_read, fd, (char *)buf + len, cap - len);
        if (r == -EINTR)
            continue;
        if (r < 0)
            return r;
        if (r == 0)
            break;
        len += (size_t)r;
    }
    return (long)len;
}

int os_read_file(const char *path, char *buf, size_t cap, size_t *ret_len)
{
    char more;
    if (cap == 0)
        return -EINVAL;
    int fd = raw_open(path, O_RDONLY | O_NONBLOCK, 0); /* a FIFO must not block us */
    if (fd < 0)
        return fd;
    long n = read_full(fd, buf, cap - 1);
    if (n == (long)cap - 1 && read_full(fd, &more, 1) > 0)
        n = -E2BIG;
    os_close(fd);
    if (n < 0)
        return (int)n;
    buf[n] = '\0';
    *ret_len = (size_t)n;
    return 0;
}

int os_map_copy(const char *path, size_t max_bytes, bool trusted, const void **ret_base,
                size_t *ret_len)
{
    struct stat st;
    void *base = NULL;
    int fd = raw_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    int r = raw_fstat(fd, &st);
    if (r == 0 && !S_ISREG(st.st_mode))
        r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    if (r == 0 && trusted &&
        ((st.st_uid != 0 && st.st_uid != os_uid()) || (st.st_mode & (S_IWGRP | S_IWOTH))))
        r = -EPERM;
    if (r == 0 && (uint64_t)st.st_size > max_bytes)
        r = -E2BIG;
    size_t size = r == 0 ? (size_t)st.st_size : 0, len = 0;
    /* A copy: whoever truncates a mapped file would kill the program by SIGBUS. */
    if (size > 0)
        r = os_map_anon(size, &base);
    if (r == 0 && size > 0) {
        long n = read_full(fd, base, size);
        r = n < 0 ? (int)n : 0;
        len = n > 0 ? (size_t)n : 0;
        size_t keep = r == 0 ? hy_align_up(len, HY_PAGE) : 0, all = hy_align_up(size, HY_PAGE);
        if (keep < all) /* it shrank meanwhile: os_unmap(base, len) must free all */
            (void)os_unmap((char *)base + keep, all - keep);
        if (keep > 0)
            (void)raw3(SYS_mprotect, base, keep, PROT_READ);
        else
            base = NULL;
    }
    os_close(fd);
    if (r != 0)
        return r;
    *ret_base = base ? base : "";
    *ret_len = len;
    return 0;
}

int os_write_all(int fd, const void *buf, size_t len)
{
    const char *p = buf;
    struct raw_quiet q;
    long r = 0;
    int waits = 0;
    raw_quiet_begin(&q);
    while (len > 0) {
        r = raw3(SYS_write, fd, p, len);
        if (r == -EINTR)
            continue;
        if (r == -EAGAIN && waits < 20) { /* non-blocking and full: wait 1 s in all */
            struct pollfd pf = {.fd = fd, .events = POLLOUT};
            struct timespec ts = {0, 50000000};
            waits += raw5(SYS_ppoll, &pf, 1, &ts, NULL, 0) <= 0;
            continue;
        }
        if (r < 0)
            break;
        p += r;
        len -= (size_t)r;
    }
    raw_quiet_end(&q, r < 0);
    return r < 0 ? (int)r : 0;
}

/* A name beside `path` that no other process or thread uses. */
static int temp_name(const char *path, char *buf, size_t cap)
{
    static unsigned serial;
    int n = snprintf(buf, cap, "%s.%d.%u.tmp", path, (int)raw0(SYS_getpid),
                     __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
    return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

/* A left-over of a dead process with our pid is skipped. */
int raw_create_temp(const char *path, int flags, unsigned mode, char *name, size_t cap)
{
    int fd = -EEXIST;
    for (int i = 0; i < 100 && fd == -EEXIST; i++) {
        int r = temp_name(path, name, cap);
        if (r != 0)
            return r;
        fd = raw_open(name, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    }
    return fd;
}

void raw_remove(const char *name)
{
    (void)raw3(SYS_unlinkat, AT_FDCWD, name, 0);
}

int raw_folder_of(const char *path, char *buf, size_t cap)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 1;
    if (n >= cap)
        return -ENAMETOOLONG;
    memcpy(buf, slash ? path : ".", n);
    buf[n] = '\0';
    return 0;
}

int os_temp_file(const char *dir, uint64_t bytes, int *ret_fd)
{
    char base[PATH_CAP], name[PATH_CAP];
    int fd = raw_open(dir, O_TMPFILE | O_RDWR | O_EXCL, 0600);
    if (fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL) { /* file system, kernel without */
        int n = snprintf(base, sizeof(base), "%s/.libhybrid", dir);
        if (n < 0 || (size_t)n >= sizeof(base))
            return -ENAMETOOLONG;
        fd = raw_create_temp(base, O_RDWR, 0600, name, sizeof(name));
        if (fd >= 0)
            raw_remove(name);
    }
    if (fd < 0)
        return fd;
    int r = set_size(fd, bytes);
    if (r != 0) {
        os_close(fd);
        return r;
    }
    *ret_fd = raw_keep(fd);
    return 0;
}

/* Give the file behind `fd`, which has no name, this one. Without /proc -ENOENT. */
static int link_named(int fd, const char *path)
{
    char name[32];
    snprintf(name, sizeof(name), "/proc/thread-self/fd/%d", fd);
    return (int)raw5(SYS_linkat, AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Size, mode and blocks of a new shared file: blocks now, -ENOSPC now. */
static int furnish(int fd, size_t bytes)
{
    int r = (int)raw2(SYS_fchmod, fd, 0600); /* whatever the umask is */
    if (r == 0)
        r = set_size(fd, bytes);
    if (r == 0)
        r = os_file_allocate(fd, 0, bytes);
    return r == -EOPNOTSUPP ? 0 : r;
}

static int create_by_temp(const char *path, size_t bytes, int *ret_fd)
{
    char name[PATH_CAP];
    int fd = raw_create_temp(path, O_RDWR, 0600, name, sizeof(name));
    if (fd < 0)
        return fd;
    int r = furnish(fd, bytes);
    if (r == 0)
        r = (int)raw5(SYS_linkat, AT_FDCWD, name, AT_FDCWD, path, 0);
    raw_remove(name);
    if (r != 0)
        os_close(fd);
    else
        *ret_fd = fd;
    return r;
}

/* A new file of zeros, complete before it gets its name: a process killed here
 * leaves nothing, or at worst (no O_TMPFILE, no /proc) a stray temporary. -EEXIST
 * when somebody else was first. */
static int create_shared(const char *path, size_t bytes, int *ret_fd)
{
    char dir[PATH_CAP];
    int r = raw_folder_of(path, dir, sizeof(dir));
    if (r != 0)
        return r;
    int fd = raw_open(dir, O_TMPFILE | O_RDWR, 0600);
    if (fd == -EOPNOTSUPP || fd == -EISDIR || fd == -EINVAL)
        return create_by_temp(path, bytes, ret_fd);
    if (fd < 0)
        return fd;
    r = furnish(fd, bytes);
    if (r == 0)
        r = link_named(fd, path);
    if (r == 0) {
        *ret_fd = fd;
        return 0;
    }
    os_close(fd);
    return r == -ENOENT ? create_by_temp(path, bytes, ret_fd) : r;
}

/* May this existing file be trusted? What root made is as the administrator wants it; what
 * this user made, unless a group of others may write to it. */
static int check_shared(int fd, size_t bytes, bool writing)
{
    struct stat st;
    int r = raw_fstat(fd, &st);
    if (r != 0)
        return r;
    if (!S_ISREG(st.st_mode))
        return -EPROTO;
    if ((st.st_uid != 0 && (st.st_uid != os_uid() || (st.st_mode & S_IWGRP))) ||
        (st.st_mode & S_IWOTH))
        return -EPERM;
    /* One for a group can be made without a tool that knows our size. */
    if (st.st_size == 0 && st.st_uid == 0 && (st.st_mode & S_IWGRP)) {
        r = writing ? set_size(fd, bytes) : -ENOENT;
        st.st_size = (off_t)bytes;
        st.st_blocks = 0;
    }
    if (r != 0)
        return r;
    if ((uint64_t)st.st_size != bytes)
        return -EPROTO;
    if ((uint64_t)st.st_blocks * 512 < bytes && writing)
        r = os_file_allocate(fd, 0, bytes);
    return r == -EOPNOTSUPP ? 0 : r;
}

int os_open_shared_file(const char *path, size_t bytes, bool writing, int *ret_fd)
{
    bool created = false;
    int fd = -EAGAIN, r = 0;
    /* Two rounds settle any race but one with somebody who keeps unlinking it. */
    for (int round = 0; round < 8; round++) {
        fd = raw_open(path, (writing ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK, 0);
        if (fd != -ENOENT || !writing)
            break;
        r = create_shared(path, bytes, &fd);
        created = r == 0;
        if (r != -EEXIST)
            break;
        r = 0;
    }
    if (r != 0)
        return r;
    if (fd == -ELOOP || fd == -EISDIR || fd == -ENXIO)
        return -EPROTO; /* a symbolic link, a directory, a socket */
    if (fd < 0)
        return fd;
    if (!created)
        r = check_shared(fd, bytes, writing);
    if (r != 0)
        os_close(fd);
    else
        *ret_fd = raw_keep(fd);
    return r;
}
