/* SPDX-License-Identifier: BSD-2-Clause
 * calloc: zero after the block has been used before, overflow, zero sizes. */
#include "victim.h"

int main(void)
{
    uint64_t s = 7;
    for (int round = 0; round < 40; round++) {
        void *p[200];
        size_t n[200];
        for (int i = 0; i < 200; i++) {
            n[i] = random_size(&s);
            p[i] = round % 2 ? calloc(1, n[i]) : malloc(n[i]);
            CHECK(p[i]);
            if (round % 2)
                CHECK(all_zero(p[i], n[i]));
            memset(p[i], 0xa5, n[i]);
        }
        for (int i = 0; i < 200; i++)
            free(p[i]);
    }
    for (size_t n = 1; n < (size_t)64 << 20; n *= 3) {
        char *q = malloc(OPAQUE(n));
        memset(q, 0xff, n);
        free(q);
        q = calloc(OPAQUE(n), 1);
        CHECK(q && (uintptr_t)q % 16 == 0 && all_zero(q, n));
        free(q);
    }
    const size_t bad[][2] = {{SIZE_MAX / 2, 3}, {(size_t)1 << 33, ((size_t)1 << 33) + 1}, {SIZE_MAX, 1},
                             {SIZE_MAX, SIZE_MAX}, {3, SIZE_MAX / 2}, {(size_t)1 << 32, (size_t)1 << 32}};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        CHECK(calloc(OPAQUE(bad[i][0]), OPAQUE(bad[i][1])) == NULL && errno == ENOMEM);
    }
    char *a = calloc(OPAQUE((size_t)0), 8), *b = calloc(8, OPAQUE((size_t)0));
    CHECK(a && b && a != b);
    free(a);
    free(b);
    puts("ok");
    return 0;
}
