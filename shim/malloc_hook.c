/* SPDX-License-Identifier: BSD-2-Clause
 * The exported allocation family. Each hook asks the table in force and obeys
 * the libc's contract; nothing is decided here. The plain ones end in a jump. A block of ours
 * that the thread's cache has a place for needs no table: every table would put it there.
 *
 * A program with an allocator linked in, or one preloaded before us, may define some names of
 * the family and not others. So a function that can be made from another one calls that by its
 * exported name, which the loader binds to the first definition: the program gets blocks of one
 * allocator. Unless its own name is defined before ours as well: then a wrapper asks us for the
 * next, and calling it back would never end. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/pause.h"
#include "core/state.h"
#include "heap/heap.h"
#include "sys/dl.h"

#define PAGE ((size_t)4096)

/* Ours, whoever has the name. */
#define OWN(name)                                                                                  \
    HY_EXPORT __typeof__(name) name;                                                               \
    extern __typeof__(name) hy_own_##name                                                          \
        __attribute__((alias(#name), visibility("hidden"), copy(name)))
OWN(malloc);
OWN(reallocarray);
OWN(memalign);
OWN(aligned_alloc);
OWN(posix_memalign);

/* Does the program reach ours by this name? What the loader says, not what the compiler knows. */
#define IS_OURS(name)                                                                              \
    (__extension__({                                                                               \
        __typeof__(&name) first_ = &name;                                                          \
        __asm__("" : "+r"(first_));                                                                \
        first_ == hy_own_##name;                                                                   \
    }))

OWN(calloc);
OWN(realloc);
OWN(free);

/* A PLT entry does not tell whose the function is: it is taken for ours. */
#define IS_THEIRS(name) (!IS_OURS(name) && dl_is_definition((const void *)name))

bool malloc_is_one_family(void)
{
    bool theirs = IS_THEIRS(malloc);
    return IS_THEIRS(calloc) == theirs && IS_THEIRS(realloc) == theirs && IS_THEIRS(free) == theirs;
}

bool malloc_is_for_threads(void)
{
    struct dl_object o;
    return runtime_has_made_thread() || !IS_THEIRS(malloc) ||
           dl_find((const void *)malloc, &o) != 0 || o.name[0] != '\0';
}

HY_EXPORT void *malloc(size_t n)
{
    return RUNTIME_OP(malloc)(n);
}

HY_EXPORT void free(void *p)
{
    if (HY_UNLIKELY(!heap_owns(p) || !heap_push(hy_cache, p)))
        RUNTIME_OP(free)(p);
}

HY_EXPORT void *calloc(size_t count, size_t size)
{
    return RUNTIME_OP(calloc)(count, size);
}

HY_EXPORT void *realloc(void *p, size_t n)
{
    return RUNTIME_OP(realloc)(p, n);
}

HY_EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    return IS_OURS(reallocarray) ? realloc(p, n) : RUNTIME_OP(realloc)(p, n);
}

/* C23; the size is a promise that is not needed. */
HY_EXPORT void free_sized(void *p, size_t n);
HY_EXPORT void free_sized(void *p, size_t n)
{
    (void)n;
    free(p);
}

HY_EXPORT void free_aligned_sized(void *p, size_t align, size_t n);
HY_EXPORT void free_aligned_sized(void *p, size_t align, size_t n)
{
    (void)align;
    (void)n;
    free(p);
}

HY_EXPORT void cfree(void *p);
HY_EXPORT void cfree(void *p)
{
    free(p);
}

static size_t power_of_two(size_t align)
{
    size_t a = 16;
    while (a < align && a)
        a <<= 1;
    return a;
}

/* Of the allocator that serves malloc, by whatever name of its aligned ones. */
static void *aligned(size_t align, size_t n)
{
    void *p = NULL;
    if (HY_LIKELY(IS_OURS(malloc)))
        return RUNTIME_OP(memalign)(align, n);
    if (!IS_OURS(memalign))
        return memalign(align, n);
    if (!IS_OURS(posix_memalign)) {
        int e = posix_memalign(&p, align, n);
        if (e)
            errno = e;
        return e ? NULL : p;
    }
    return IS_OURS(aligned_alloc) ? RUNTIME_OP(memalign)(align, n) : aligned_alloc(align, n);
}

/* glibc rounds an alignment that is no power of two up, and refuses one that
 * is larger than half the address space. */
HY_EXPORT void *memalign(size_t align, size_t n)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    align = power_of_two(align);
    return IS_OURS(memalign) ? aligned(align, n) : RUNTIME_OP(memalign)(align, n);
}

HY_EXPORT void *aligned_alloc(size_t align, size_t n)
{
    return IS_OURS(aligned_alloc) ? memalign(align, n) : hy_own_memalign(align, n);
}

/* As with glibc, errno stays as it was but where there is no memory; *ret is untouched on failure.
 */
HY_EXPORT int posix_memalign(void **ret, size_t align, size_t n)
{
    int saved = errno;
    if (align == 0 || align % sizeof(void *) || (align & (align - 1)))
        return EINVAL;
    void *p = IS_OURS(posix_memalign) ? aligned(align, n) : RUNTIME_OP(memalign)(align, n);
    errno = p ? saved : ENOMEM;
    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

HY_EXPORT void *valloc(size_t n)
{
    return memalign(PAGE, n);
}

HY_EXPORT void *pvalloc(size_t n)
{
    if (n > SIZE_MAX - PAGE) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(PAGE, n ? (n + PAGE - 1) & ~(PAGE - 1) : PAGE);
}

HY_EXPORT size_t malloc_usable_size(void *p)
{
    return p ? RUNTIME_OP(usable_size)(p) : 0;
}

/* --- glibc's other names ------------------------------------------------------------------- */

/* Programs that wrap malloc call the libc's by these. */
#define LIBC_NAME(type, name, ...)                                                                 \
    HY_EXPORT type name(__VA_ARGS__);                                                              \
    HY_EXPORT type name(__VA_ARGS__)

/* An allocator behind us that serves its malloc by these names must not come back to us. */
static const struct alloc_ops *libc_ops(void)
{
    const struct alloc_ops *libc = next_libc();
    return HY_LIKELY(!libc) ? &hy_ops : libc;
}

static const struct alloc_ops *libc_ops_for(const void *p)
{
    return heap_owns(p) ? &hy_ops : libc_ops();
}

LIBC_NAME(void *, __libc_malloc, size_t n)
{
    return libc_ops()->malloc(n);
}

LIBC_NAME(void, __libc_free, void *p)
{
    libc_ops_for(p)->free(p);
}

LIBC_NAME(void, __libc_cfree, void *p)
{
    libc_ops_for(p)->free(p);
}

LIBC_NAME(void *, __libc_calloc, size_t count, size_t size)
{
    return libc_ops()->calloc(count, size);
}

LIBC_NAME(void *, __libc_realloc, void *p, size_t n)
{
    return libc_ops_for(p)->realloc(p, n);
}

LIBC_NAME(void *, __libc_memalign, size_t align, size_t n)
{
    if (align > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    return libc_ops()->memalign(power_of_two(align), n);
}

LIBC_NAME(void *, __libc_valloc, size_t n)
{
    return libc_ops()->memalign(PAGE, n);
}

LIBC_NAME(void *, __libc_pvalloc, size_t n)
{
    if (n > SIZE_MAX - PAGE) {
        errno = ENOMEM;
        return NULL;
    }
    return libc_ops()->memalign(PAGE, n ? (n + PAGE - 1) & ~(PAGE - 1) : PAGE);
}
