/* SPDX-License-Identifier: BSD-2-Clause
 * libc's memory functions: lines are counted, then the work is done here, as asking
 * the next library could recurse (dlsym itself copies). And mappings: which of them
 * are PM. Built without -D_FILE_OFFSET_BITS, whose header renames mmap. */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "program/mapped.h"
#include "pmemu.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#ifdef __x86_64__
static inline void copy_up(void *d, const void *s, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

static inline void fill(void *d, int c, size_t n)
{
    __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
}
#else
/* The build forbids the compiler to make calls of memcpy out of these loops. */
static inline void copy_up(void *d, const void *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((char *)d)[i] = ((const char *)s)[i];
}

static inline void fill(void *d, int c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((char *)d)[i] = (char)c;
}
#endif

#define IGNORED 8

static struct {
    uintptr_t start, bytes;
} ignored[IGNORED];
static _Atomic unsigned n_ignored;

EXPORT int pmemu_ignore_code(const void *start, const void *end)
{
    static _Atomic unsigned claimed;
    unsigned i = atomic_fetch_add(&claimed, 1), before = i;

    if (i >= IGNORED)
        return -ENOSPC;
    ignored[i].start = (uintptr_t)start;
    ignored[i].bytes = (uintptr_t)end - (uintptr_t)start;
    while (!atomic_compare_exchange_weak(&n_ignored, &before, i + 1))
        before = i; /* in order: no reader sees a range that is not written yet */
    return 0;
}

/* The core's own copies do not count, nor those of code that is no part of the program. */
static inline __attribute__((always_inline)) bool counting(void)
{
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    unsigned n = atomic_load_explicit(&n_ignored, memory_order_acquire);

    if (!emu_live() || emu_self.inside != 0)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (caller - ignored[i].start < ignored[i].bytes)
            return false;
    return true;
}

static inline __attribute__((always_inline)) void count_copy(const void *d, const void *s, size_t n)
{
    if (!counting())
        return;
    emu_touch_range(s, n, 0);
    emu_touch_range(d, n, 1);
}

EXPORT void *memcpy(void *restrict d, const void *restrict s, size_t n)
{
    count_copy(d, s, n);
    copy_up(d, s, n);
    return d;
}

EXPORT void *mempcpy(void *restrict d, const void *restrict s, size_t n)
{
    return (char *)memcpy(d, s, n) + n;
}

EXPORT void *memmove(void *d, const void *s, size_t n)
{
    char *to = d;
    const char *from = s;

    count_copy(d, s, n);
    if ((uintptr_t)d - (uintptr_t)s >= n) {
        copy_up(d, s, n);
        return d;
    }
    while (n >= 8) {
        uint64_t x;
        n -= 8;
        __builtin_memcpy(&x, from + n, 8);
        __builtin_memcpy(to + n, &x, 8);
    }
    while (n-- > 0)
        to[n] = from[n];
    return d;
}

EXPORT void *memset(void *d, int c, size_t n)
{
    if (counting())
        emu_touch_range(d, n, 1);
    fill(d, c, n);
    return d;
}

EXPORT void *mmap(void *a, size_t n, int prot, int flags, int fd, off_t offset)
{
    void *r = (void *)syscall(SYS_mmap, a, n, prot, flags, fd, offset);
    if (r != MAP_FAILED)
        emu_mapped((uintptr_t)r, n, flags & MAP_ANONYMOUS ? -1 : fd);
    return r;
}

EXPORT void *mmap64(void *a, size_t n, int prot, int flags, int fd, off_t offset)
{
    return mmap(a, n, prot, flags, fd, offset);
}

EXPORT int munmap(void *a, size_t n)
{
    emu_unmapped((uintptr_t)a, n);
    return (int)syscall(SYS_munmap, a, n);
}

EXPORT int madvise(void *a, size_t n, int advice)
{
    int r = (int)syscall(SYS_madvise, a, n, advice);
    if (r == 0)
        emu_advised((uintptr_t)a, n, advice);
    return r;
}

EXPORT void *mremap(void *a, size_t old, size_t n, int flags, ...)
{
    void *at = NULL, *r;
    if (flags & MREMAP_FIXED) {
        va_list ap;
        va_start(ap, flags);
        at = va_arg(ap, void *);
        va_end(ap);
    }
    r = (void *)syscall(SYS_mremap, a, old, n, flags, at);
    if (r != MAP_FAILED)
        emu_remapped((uintptr_t)a, old, (uintptr_t)r, n);
    return r;
}
