/* SPDX-License-Identifier: BSD-2-Clause
 * The exported mapping calls. */
/* With 64-bit offsets asked for, the header would rename mmap to mmap64, and
 * one of the two would be missing. */
#undef _FILE_OFFSET_BITS
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "process/process.h"
#include "sys/dl.h"
#include "sys/next.h"

HY_EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    return runtime_mmap(addr, len, prot, flags, fd, off);
}

HY_EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
    return runtime_mmap(addr, len, prot, flags, fd, off);
}

HY_EXPORT int munmap(void *addr, size_t len)
{
    return runtime_munmap(addr, len);
}

/* The fifth argument exists only with MREMAP_FIXED or MREMAP_DONTUNMAP. */
HY_EXPORT void *mremap(void *old, size_t old_len, size_t new_len, int flags, ...)
{
    void *new_addr = NULL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
        va_list ap;
        va_start(ap, flags);
        new_addr = va_arg(ap, void *);
        va_end(ap);
    }
    return runtime_mremap(old, old_len, new_len, flags, new_addr);
}

HY_EXPORT int madvise(void *addr, size_t len, int advice)
{
    DL_NEXT(madvise);
    runtime_advised(addr, len, advice);
    return fn(addr, len, advice);
}

HY_EXPORT int mprotect(void *addr, size_t len, int prot)
{
    runtime_protects(addr, len, prot);
    return next_map()->mprotect(addr, len, prot);
}

HY_EXPORT int pkey_mprotect(void *addr, size_t len, int prot, int key)
{
    DL_NEXT(pkey_mprotect);
    runtime_protects(addr, len, key == -1 ? prot : PROT_NONE); /* the key stays as well */
    return fn(addr, len, prot, key);
}

HY_EXPORT int mlock(const void *addr, size_t len)
{
    DL_NEXT(mlock);
    alter_pages(addr, len);
    return fn(addr, len);
}

HY_EXPORT int mlock2(const void *addr, size_t len, unsigned flags)
{
    DL_NEXT(mlock2);
    alter_pages(addr, len);
    return fn(addr, len, flags);
}

HY_EXPORT void *shmat(int id, const void *addr, int flags)
{
    DL_NEXT(shmat);
    runtime_attaches(id, addr, flags);
    return fn(id, addr, flags);
}

HY_EXPORT int mlockall(int flags)
{
    DL_NEXT(mlockall);
    int r = fn(flags);
    if (r == 0)
        runtime_all_locked(flags);
    return r;
}

/* The kernel takes no more than one argument, a word. */
HY_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return runtime_ioctl(fd, request, arg);
}
