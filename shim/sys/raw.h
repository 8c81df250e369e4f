/* SPDX-License-Identifier: BSD-2-Clause
 * System calls without libc's wrappers, for shim/sys only. The wrappers of
 * mmap, munmap and mremap are our own hooks, and open, read, write, ... are
 * cancellation points: a thread cancelled inside malloc would leave locks held. */
#ifndef HYBRID_SYS_RAW_H
#define HYBRID_SYS_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/thread.h"

/* Result, or -errno; the caller's errno is left alone. syscall() is a hook of ours, which passes
 * them on: so one that somebody preloads before or behind us is asked as well. */
static inline bool raw_is_memory(long nr)
{
    return nr == SYS_mmap || nr == SYS_munmap || nr == SYS_mremap || nr == SYS_mprotect ||
           nr == SYS_madvise || nr == SYS_mlock || nr == SYS_mlock2;
}

static inline long raw_call(long nr, long a, long b, long c, long d, long e, long f)
{
    int saved = errno;
    if (raw_is_memory(nr)) /* not the program's doing */
        hy_raw_memory++;
    long r = syscall(nr, a, b, c, d, e, f);
    if (raw_is_memory(nr))
        hy_raw_memory--;
    if (r == -1) {
        r = -errno;
        errno = saved;
    }
    return r;
}

#define raw0(nr)             raw_call((nr), 0, 0, 0, 0, 0, 0)
#define raw1(nr, a)          raw_call((nr), (long)(a), 0, 0, 0, 0, 0)
#define raw2(nr, a, b)       raw_call((nr), (long)(a), (long)(b), 0, 0, 0, 0)
#define raw3(nr, a, b, c)    raw_call((nr), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define raw4(nr, a, b, c, d) raw_call((nr), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define raw5(nr, a, b, c, d, e)                                                                    \
    raw_call((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define raw6(nr, a, b, c, d, e, f)                                                                 \
    raw_call((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* stat and fstat by one call, which a filter takes for the libc's own; at each start a look-up by
 * the loader less. `flags`: AT_SYMLINK_NOFOLLOW, or 0. */
static inline int raw_stat(const char *path, int flags, struct stat *ret)
{
    return (int)raw4(SYS_newfstatat, AT_FDCWD, path, ret, flags);
}

static inline int raw_fstat(int fd, struct stat *ret)
{
    return (int)raw4(SYS_newfstatat, fd, "", ret, AT_EMPTY_PATH);
}

/* Shared by the files of this folder. */

/* openat with O_CLOEXEC | O_NOCTTY that never returns 0, 1 or 2: in a program
 * that closed its standard files, our file must not become its stderr. */
int raw_open(const char *path, int flags, unsigned mode);
/* For a descriptor that stays open: the same on a high number, if there is one. The low ones
 * are the program's, which may count on them. An error stays what it is. */
int raw_keep(int fd);
/* The folder that a file of this name is in: what stands before the name, or ".". */
int raw_folder_of(const char *path, char *buf, size_t cap);
/* Create a file beside `path`, by a name that no other process or thread uses. */
int raw_create_temp(const char *path, int flags, unsigned mode, char *name, size_t cap);
void raw_remove(const char *name);
/* The decimal number at *p, behind blanks; of a negative one its two's complement. *p moves behind
 * it; false if there is none. */
bool raw_take_number(const char **p, uint64_t *ret);
/* SIGPIPE, SIGXFSZ and SIGTTOU raised by calls of ours must not reach the program. */
struct raw_quiet {
    unsigned long old_mask, pending_before;
};
void raw_quiet_begin(struct raw_quiet *q);
void raw_quiet_end(const struct raw_quiet *q, bool failed);

#endif
