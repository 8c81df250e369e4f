/* SPDX-License-Identifier: BSD-2-Clause
 * A block that is freed twice must not be handed out twice. glibc ends such a program; we say so
 * and go on, so this is not compared with a plain run: 0 and "ok" are what is wanted. */
#include "victim.h"

int main(void)
{
    for (size_t n = 16; n <= 200000; n = n * 3 + 5) {
        void *volatile p = malloc(n);
        void *volatile q = malloc(n);
        free(p);
        free(p);
        free(q);
        free(p);
        void *a = malloc(n), *b = malloc(n), *c = malloc(n);
        CHECK(a != b && b != c && a != c);
        free(a);
        free(b);
        free(c);
    }
    puts("ok");
    return 0;
}
