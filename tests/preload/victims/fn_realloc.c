/* SPDX-License-Identifier: BSD-2-Clause
 * realloc: content kept up and down over all sizes to 1 MiB, NULL, 0, failure. */
#include "victim.h"

#include <malloc.h>

static void walk(size_t from, size_t to, size_t step)
{
    char *p = malloc(from);
    size_t have = from;
    fill(p, have, 1);
    for (size_t n = from; n <= to; n += step) {
        p = realloc(p, n);
        CHECK(p && (uintptr_t)p % 16 == 0 && malloc_usable_size(p) >= n);
        CHECK(holds(p, have & ~(size_t)7, 1));
        have = n;
        fill(p, have, 1);
    }
    for (size_t n = have; n > 8; n -= step < n ? step : n) {
        p = realloc(p, n);
        CHECK(p && holds(p, n & ~(size_t)7, 1));
        if (n < 16)
            break;
    }
    free(p);
}

/* Every size pair near the borders of size classes, from any class to any. */
static void jumps(void)
{
    static const size_t at[] = {1, 8, 16, 24, 100, 128, 512, 1000, 1024, 4000, 4096, 8000, 8192, 16384, 32768, 65536,
                                131072, 200000, 524288, 1048576, 2097152, 8388608, 20000000};
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++)
        for (unsigned j = 0; j < sizeof at / sizeof *at; j++)
            for (int d = -1; d <= 1; d++) {
                size_t a = at[i] + 1, b = at[j] + 1 + (size_t)(d + 0), low = (a < b ? a : b) & ~(size_t)7;
                if (a > 1 << 20 && j % 3)
                    continue;
                char *p = malloc(a);
                CHECK(p);
                fill(p, a, i + 1);
                p = realloc(p, b);
                CHECK(p && holds(p, low, i + 1));
                memset(p, 1, b);
                free(p);
            }
}

int main(void)
{
    walk(1, 9000, 1);
    walk(16384, 1 << 20, 5003);
    jumps();
    char *p = realloc(NULL, OPAQUE((size_t)100));
    CHECK(p);
    fill(p, 100, 3);
    const size_t huge[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX, SIZE_MAX - 4096};
    for (unsigned i = 0; i < 3; i++) {
        errno = 0;
        char *q = realloc(p, OPAQUE(huge[i]));
        CHECK(!q && errno == ENOMEM);
        CHECK(holds(p, 100, 3)); /* the old block is untouched */
    }
    CHECK(realloc(p, OPAQUE((size_t)0)) == NULL); /* glibc: freed */
    p = realloc(NULL, OPAQUE((size_t)0));
    CHECK(p);
    free(p);
    for (int i = 0; i < 100; i++) { /* growing by steps as a vector does */
        size_t n = 16;
        p = malloc(n);
        for (; n < 300000; n += n / 2) {
            memset(p, (int)n, n);
            p = realloc(p, n + n / 2);
            CHECK(p && p[n - 1] == (char)n);
        }
        free(p);
    }
    puts("ok");
    return 0;
}
