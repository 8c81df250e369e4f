/* SPDX-License-Identifier: BSD-2-Clause
 * A malloc that gives the same memory out several times: one call in 61. For the test
 * that the benchmarks notice it; never measured. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

void *malloc(size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

static _Alignas(64) char shared[16 << 20];

static int is_shared(const void *block)
{
    return (uintptr_t)block - (uintptr_t)shared < sizeof(shared);
}

void *malloc(size_t size)
{
    static unsigned calls;

    if (size < sizeof(shared) && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 61 == 0)
        return shared;
    return __libc_malloc(size);
}

void *realloc(void *block, size_t size)
{
    void *other;

    if (!is_shared(block))
        return __libc_realloc(block, size);
    other = __libc_malloc(size);
    if (other)
        memcpy(other, block, size < sizeof(shared) ? size : sizeof(shared));
    return other;
}

void free(void *block)
{
    if (!is_shared(block))
        __libc_free(block);
}
