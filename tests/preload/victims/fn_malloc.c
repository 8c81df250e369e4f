/* SPDX-License-Identifier: BSD-2-Clause
 * malloc: alignment and room for every size, zero sizes, overflow, errno. */
#include "victim.h"

#include <malloc.h>

int main(void)
{
    enum { N = 5000 };
    static char *p[N];
    for (size_t n = 0; n < N; n++) {
        p[n] = malloc(OPAQUE(n));
        CHECK(p[n] && (uintptr_t)p[n] % 16 == 0 && malloc_usable_size(p[n]) >= n);
        fill(p[n], n, n);
    }
    for (size_t n = 0; n < N; n++)
        CHECK(holds(p[n], n, n));
    for (size_t n = 0; n < N; n++)
        free(p[n]);
    for (size_t n = 4096; n < (size_t)200 << 20; n = n * 3 / 2 + 1) {
        char *q = malloc(OPAQUE(n));
        CHECK(q && (uintptr_t)q % 16 == 0);
        q[0] = q[n / 2] = q[n - 1] = 1;
        free(q);
    }
    char *a = malloc(OPAQUE((size_t)0)), *b = malloc(OPAQUE((size_t)0));
    CHECK(a && b && a != b);
    free(a);
    free(b);
    const size_t huge[] = {PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 4096,
                           (size_t)1 << 62};
    for (unsigned i = 0; i < sizeof huge / sizeof *huge; i++) {
        errno = 0;
        CHECK(malloc(OPAQUE(huge[i])) == NULL && errno == ENOMEM);
    }
    a = malloc(OPAQUE((size_t)10));
    CHECK(a);
    free(a);
    puts("ok");
    return 0;
}
