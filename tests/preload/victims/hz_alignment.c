/* SPDX-License-Identifier: BSD-2-Clause
 * A small block with a large alignment takes no memory of its alignment's size, be it as pages or
 * as blocks of an unlinked file that the process has open. */
#include "victim.h"

#include <sys/stat.h>

#define MIB   ((size_t)1 << 20)
#define ALIGN ((size_t)1 << 29)
#define N     ((size_t)70000)
#define FDS   300

static size_t file_bytes(void)
{
    size_t sum = 0;
    for (int fd = 3; fd < FDS; fd++) {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0)
            sum += (size_t)st.st_blocks * 512;
    }
    return sum;
}

int main(void)
{
    size_t before = file_bytes() + statm(2);
    for (uint64_t i = 0; i < 3; i++) {
        char *p = aligned_alloc(ALIGN, N);
        CHECK(p && (uintptr_t)p % ALIGN == 0);
        fill(p, N, i);
        CHECK(file_bytes() + statm(2) < before + 200 * MIB);
        char *q = malloc(6 * MIB);
        fill(q, 6 * MIB, i + 1);
        CHECK(holds(p, N, i));
        free(p);
        char *z = calloc(1, 40 * MIB); /* in what was left free for the alignment */
        CHECK(all_zero(z, 40 * MIB));
        fill(z, 40 * MIB, i + 2);
        pid_t child = fork();
        if (child == 0) {
            memset(z, 1, 40 * MIB);
            free(z);
            z = calloc(1, 20 * MIB);
            _exit(all_zero(z, 20 * MIB) ? 4 : 5);
        }
        CHECK(reap(child) == 4 && holds(z, 40 * MIB, i + 2) && holds(q, 6 * MIB, i + 1));
        free(q);
        free(z);
    }
    puts("ok");
    return 0;
}
