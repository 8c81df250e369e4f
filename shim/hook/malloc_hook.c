/* SPDX-License-Identifier: BSD-2-Clause
 * The exported allocation family. Each hook asks the table in force and obeys
 * the libc's contract; nothing is decided here. The plain ones end in a jump. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/runtime.h"

#define PAGE ((size_t)4096)

HY_EXPORT void *malloc(size_t n)
{
    return runtime_ops()->malloc(n);
}

HY_EXPORT void free(void *p)
{
    runtime_ops()->free(p);
}

HY_EXPORT void *calloc(size_t count, size_t size)
{
    return runtime_ops()->calloc(count, size);
}

HY_EXPORT void *realloc(void *p, size_t n)
{
    return runtime_ops()->realloc(p, n);
}

HY_EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    return runtime_ops()->realloc(p, n);
}

/* C23; the size is a promise that is not needed. */
HY_EXPORT void free_sized(void *p, size_t n);
HY_EXPORT void free_sized(void *p, size_t n)
{
    (void)n;
    runtime_ops()->free(p);
}

HY_EXPORT void free_aligned_sized(void *p, size_t align, size_t n);
HY_EXPORT void free_aligned_sized(void *p, size_t align, size_t n)
{
    (void)align;
    (void)n;
    runtime_ops()->free(p);
}

HY_EXPORT void cfree(void *p);
HY_EXPORT void cfree(void *p)
{
    runtime_ops()->free(p);
}

static size_t power_of_two(size_t align)
{
    size_t a = 16;
    while (a < align && a)
        a <<= 1;
    return a;
}

/* glibc rounds an alignment that is no power of two up, and refuses one that
 * is larger than half the address space. */
HY_EXPORT void *memalign(size_t align, size_t n)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    return runtime_ops()->memalign(power_of_two(align), n);
}

HY_EXPORT void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

/* errno stays as it was; *ret is untouched on failure. */
HY_EXPORT int posix_memalign(void **ret, size_t align, size_t n)
{
    int saved = errno;
    if (align == 0 || align % sizeof(void *) || (align & (align - 1)))
        return EINVAL;
    void *p = runtime_ops()->memalign(align, n);
    errno = saved;
    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

HY_EXPORT void *valloc(size_t n)
{
    return runtime_ops()->memalign(PAGE, n);
}

HY_EXPORT void *pvalloc(size_t n)
{
    if (n > SIZE_MAX - PAGE) {
        errno = ENOMEM;
        return NULL;
    }
    return runtime_ops()->memalign(PAGE, n ? (n + PAGE - 1) & ~(PAGE - 1) : PAGE);
}

HY_EXPORT size_t malloc_usable_size(void *p)
{
    return p ? runtime_ops()->usable_size(p) : 0;
}
