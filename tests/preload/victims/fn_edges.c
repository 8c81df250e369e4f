/* SPDX-License-Identifier: BSD-2-Clause
 * Every function of the family with every size and alignment that is at an edge: NULL or a block,
 * errno, the alignment and the room of the block, as the libc's own. errno is 77 before each call.
 */
#include "victim.h"

#include <malloc.h>

#pragma GCC diagnostic ignored "-Walloc-size-larger-than="
#pragma GCC diagnostic ignored "-Walloc-zero"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BITS(n)  ((size_t)1 << (n))

static const size_t size[] = {0,
                              1,
                              8,
                              16,
                              4095,
                              4096,
                              4097,
                              BITS(16),
                              BITS(20),
                              BITS(40),
                              BITS(46),
                              BITS(47),
                              BITS(47) - 4096,
                              PTRDIFF_MAX - BITS(16),
                              PTRDIFF_MAX - 4096,
                              PTRDIFF_MAX - 1,
                              PTRDIFF_MAX,
                              BITS(63),
                              SIZE_MAX - BITS(16),
                              SIZE_MAX - 4096,
                              SIZE_MAX - 4095,
                              SIZE_MAX - 1,
                              SIZE_MAX};
static const size_t align[] = {0,
                               1,
                               2,
                               3,
                               4,
                               7,
                               8,
                               12,
                               16,
                               24,
                               48,
                               64,
                               4096,
                               5000,
                               BITS(16),
                               BITS(20),
                               BITS(30),
                               BITS(40),
                               BITS(46),
                               BITS(47),
                               BITS(62),
                               BITS(63),
                               BITS(63) + 1,
                               SIZE_MAX};

extern void *__libc_malloc(size_t n), *__libc_calloc(size_t count, size_t n);
extern void *__libc_realloc(void *p, size_t n), *__libc_memalign(size_t a, size_t n);
extern void *__libc_valloc(size_t n), *__libc_pvalloc(size_t n);

static char left; /* what posix_memalign does not touch */

static void tell(const char *what, size_t a, size_t n, int r, void *p)
{
    int e = errno;
    size_t want = 16;
    while (want < a && want)
        want <<= 1;
    printf("%s %zx %zx: %d %s %d", what, a, n, r, !p ? "NULL" : p == &left ? "left" : "block", e);
    if (p && p != &left) {
        printf("%s", (uintptr_t)p % want ? " not aligned" : "");
        printf("%s", malloc_usable_size(p) < n ? " short" : "");
        errno = 77;
        free(p);
        printf("%s", errno == 77 ? "" : " free sets errno");
    }
    puts("");
}

#define TELL(a, n, call)                                                                           \
    do {                                                                                           \
        errno = 77;                                                                                \
        void *p_ = (call);                                                                         \
        tell(#call, (a), (n), 0, p_);                                                              \
    } while (0)

static void sized(size_t n)
{
    TELL(0, n, malloc(n));
    TELL(0, n, calloc(1, n));
    TELL(0, n, calloc(n, 1));
    TELL(0, 0, calloc(n, 0));
    TELL(0, n, calloc(n, 16));
    TELL(0, n, calloc(n, SIZE_MAX / 2));
    TELL(0, n, realloc(NULL, n));
    TELL(0, n, reallocarray(NULL, n, 2));
    TELL(0, n, reallocarray(NULL, 2, n));
    TELL(0, 0, reallocarray(NULL, 0, n));
    TELL(4096, n, valloc(n));
    TELL(4096, n, pvalloc(n));
    TELL(0, n, __libc_malloc(n));
    TELL(0, n, __libc_calloc(n, 3));
    TELL(0, n, __libc_realloc(NULL, n));
    TELL(4096, n, __libc_valloc(n));
    TELL(4096, n, __libc_pvalloc(n));
}

static void aligned(size_t a, size_t n)
{
    void *p = &left;
    TELL(a, n, memalign(a, n));
    TELL(a, n, aligned_alloc(a, n));
    TELL(a, n, __libc_memalign(a, n));
    errno = 77;
    int r = posix_memalign(&p, a, n);
    tell("posix_memalign", a, n, r, p);
}

/* A block that cannot have its new size stays as it is. */
static void resized(size_t from, size_t n)
{
    char *p = malloc(from);
    fill(p, from, 9);
    errno = 77;
    char *q = realloc(p, n);
    int e = errno;
    CHECK(!q || holds(q, (n < from ? n : from) & ~(size_t)7, 9));
    CHECK(q || n == 0 || holds(p, from, 9));
    if (!q && n)
        free(p);
    errno = e;
    tell("realloc", 0, n, 0, q);
}

int main(void)
{
    for (size_t i = 0; i < COUNT(size); i++) {
        sized(size[i]);
        for (size_t k = 0; k < COUNT(align); k++)
            aligned(align[k], size[i]);
        for (size_t from = 8; from < 4000000; from *= 20)
            resized(from, size[i]);
    }
    return 0;
}
