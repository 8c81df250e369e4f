/* SPDX-License-Identifier: BSD-2-Clause
 * reallocarray: as realloc, and no overflow of the product. */
#include "victim.h"

int main(void)
{
    long *p = NULL;
    for (size_t n = 1; n < 300000; n = n * 2 + 1) {
        p = reallocarray(p, OPAQUE(n), sizeof *p);
        CHECK(p);
        for (size_t i = 0; i < n / 2; i++)
            CHECK(p[i] == (long)i);
        for (size_t i = 0; i < n; i++)
            p[i] = (long)i;
    }
    errno = 0;
    CHECK(!reallocarray(p, OPAQUE(SIZE_MAX / 4), 8) && errno == ENOMEM && p[1000] == 1000);
    errno = 0;
    CHECK(!reallocarray(p, OPAQUE((size_t)1 << 32), OPAQUE((size_t)1 << 32)) && errno == ENOMEM);
    errno = 0;
    CHECK(!reallocarray(NULL, OPAQUE(SIZE_MAX), OPAQUE((size_t)2)) && errno == ENOMEM);
    free(p);
    puts("ok");
    return 0;
}
