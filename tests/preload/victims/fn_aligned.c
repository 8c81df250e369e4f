/* SPDX-License-Identifier: BSD-2-Clause
 * posix_memalign, aligned_alloc, memalign, valloc, pvalloc: every alignment to
 * 4 MiB, error codes, the pointer untouched on failure, realloc of such blocks. */
#include "victim.h"

#include <malloc.h>

static void use(char *p, size_t a, size_t n)
{
    CHECK(p && (uintptr_t)p % a == 0 && malloc_usable_size(p) >= n);
    fill(p, n, a);
    CHECK(holds(p, n, a));
    char *q = realloc(p, n + 5000);
    CHECK(q && holds(q, n & ~(size_t)7, a));
    free(q);
}

int main(void)
{
    for (size_t a = 1; a <= (size_t)4 << 20; a *= 2)
        for (size_t n = 0; n < 300000; n = n * 5 + 1) {
            void *p = (void *)0x55;
            int e = posix_memalign(&p, OPAQUE(a), n);
            if (a < sizeof(void *)) {
                CHECK(e == EINVAL && p == (void *)0x55);
            } else {
                CHECK(e == 0);
                use(p, a, n);
            }
            use(memalign(OPAQUE(a), n), a, n);
            size_t whole = (n + a - 1) / a * a;
            use(aligned_alloc(OPAQUE(a), whole), a, whole);
        }
    void *p = (void *)0x55;
    errno = 4711;
    CHECK(posix_memalign(&p, OPAQUE((size_t)24), 100) == EINVAL && posix_memalign(&p, OPAQUE((size_t)0), 100) == EINVAL);
    CHECK(posix_memalign(&p, OPAQUE((size_t)4), 100) == EINVAL);
    CHECK(posix_memalign(&p, 64, OPAQUE((size_t)PTRDIFF_MAX)) == ENOMEM && posix_memalign(&p, 64, OPAQUE(SIZE_MAX)) == ENOMEM);
    CHECK(posix_memalign(&p, OPAQUE((size_t)1 << 62), 64) == ENOMEM);
    CHECK(p == (void *)0x55);
    CHECK(!memalign(64, OPAQUE(SIZE_MAX - 10)) && errno == ENOMEM);
    errno = 0;
    CHECK(!aligned_alloc(4096, OPAQUE(SIZE_MAX - 4095)) && errno == ENOMEM);
    errno = 0;
    CHECK(!memalign(OPAQUE(SIZE_MAX / 2 + 2), 64) && (errno == EINVAL || errno == ENOMEM));
    for (size_t n = 0; n < 100000; n = n * 3 + 1) {
        use(valloc(OPAQUE(n)), 4096, n);
        char *q = pvalloc(OPAQUE(n));
        CHECK(malloc_usable_size(q) >= ((n + 4095) & ~(size_t)4095));
        use(q, 4096, n);
    }
    errno = 0;
    CHECK(!valloc(OPAQUE(SIZE_MAX - 4000)) && errno == ENOMEM);
    errno = 0;
    CHECK(!pvalloc(OPAQUE(SIZE_MAX - 4000)) && errno == ENOMEM);
    puts("ok");
    return 0;
}
