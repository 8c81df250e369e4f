/* SPDX-License-Identifier: BSD-2-Clause
 * glibc's other names for its allocator are of one family with the known ones: programs that wrap
 * malloc call them, and mix. */
#include "victim.h"

#include <malloc.h>

void *__libc_malloc(size_t n);
void __libc_free(void *p);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void *__libc_valloc(size_t n);
void *__libc_pvalloc(size_t n);

static void pair(size_t n)
{
    char *p = __libc_malloc(n);
    CHECK(p && malloc_usable_size(p) >= n);
    fill(p, n, n);
    p = realloc(p, 2 * n + 8);
    CHECK(p && holds(p, n & ~(size_t)7, n));
    __libc_free(p);
    p = malloc(n);
    fill(p, n, n);
    p = __libc_realloc(p, 3 * n + 8);
    CHECK(p && holds(p, n & ~(size_t)7, n));
    free(p);
    p = __libc_calloc(3, n);
    CHECK(p && all_zero(p, 3 * n));
    free(p);
    p = calloc(n, 2);
    __libc_free(p);
}

static void aligned(size_t n)
{
    for (size_t align = 16; align <= 65536; align *= 4) {
        char *p = __libc_memalign(align, n);
        CHECK(p && (uintptr_t)p % align == 0);
        free(p);
        CHECK(posix_memalign((void **)&p, align, n) == 0);
        __libc_free(p);
    }
    char *p = __libc_valloc(n);
    CHECK(p && (uintptr_t)p % 4096 == 0);
    free(p);
    p = __libc_pvalloc(n);
    CHECK(p && (uintptr_t)p % 4096 == 0 && malloc_usable_size(p) >= ((n + 4095) & ~(size_t)4095));
    free(p);
}

int main(void)
{
    uint64_t s = 7;
    for (int i = 0; i < 3000; i++)
        pair(random_size(&s) + 1);
    for (int i = 0; i < 50; i++)
        aligned(random_size(&s) + 1);
    errno = 0;
    CHECK(!__libc_malloc(PTRDIFF_MAX) && errno == ENOMEM);
    CHECK(!__libc_pvalloc(SIZE_MAX - 5) && errno == ENOMEM);
    __libc_free(NULL);
    puts("ok");
    return 0;
}
