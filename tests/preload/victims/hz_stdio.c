/* SPDX-License-Identifier: BSD-2-Clause
 * Output that waits in heap buffers when main returns must not be lost: libc
 * flushes after every destructor, that of memkind included. */
#include "victim.h"

int main(int argc, char **argv)
{
    size_t cap = argc > 1 ? strtoul(argv[1], NULL, 0) : 1 << 16;
    char *buf = malloc(cap);
    CHECK(setvbuf(stdout, buf, _IOFBF, cap) == 0);
    FILE *f = fopen("written-at-exit", "w");
    CHECK(f);
    CHECK(setvbuf(f, malloc(cap), _IOFBF, cap) == 0);
    for (size_t i = 0; i < cap / 20; i++) {
        printf("line %zu\n", i);
        fprintf(f, "line %zu\n", i);
    }
    return 0;
}
