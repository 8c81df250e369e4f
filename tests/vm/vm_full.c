/* SPDX-License-Identifier: BSD-2-Clause
 * vm_full MIB: fills more memory than the PM node has. Every allocation must
 * succeed and keep what is written; the second half of the blocks is given back
 * and allocated again, by malloc and by mmap. Prints the pages of each node. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BYTES = 1 << 20, PAGE = 4096, WORDS = BYTES / sizeof(uint64_t) };

static void fill(uint64_t *block, uint64_t seed)
{
    for (int i = 0; i < WORDS; i += PAGE / 64) /* 8 words a page */
        block[i] = seed * 1000003u + (uint64_t)i;
}

static int holds(const uint64_t *block, uint64_t seed)
{
    for (int i = 0; i < WORDS; i += PAGE / 64) {
        if (block[i] != seed * 1000003u + (uint64_t)i)
            return 0;
    }
    return 1;
}

static int check_all(uint64_t **blocks, int n, const char *when)
{
    for (int i = 0; i < n; i++) {
        if (!holds(blocks[i], (uint64_t)i)) {
            printf("block %d lost its content %s\n", i, when);
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 64;
    unsigned long on[2] = {0, 0};
    uint64_t **blocks = calloc((size_t)n, sizeof(*blocks));
    if (!blocks)
        return 2;
    for (int i = 0; i < n; i++) {
        blocks[i] = malloc(BYTES);
        if (!blocks[i]) {
            printf("malloc of MiB %d failed: %s\n", i, strerror(errno));
            return 1;
        }
        fill(blocks[i], (uint64_t)i);
    }
    if (!check_all(blocks, n, "after filling"))
        return 1;
    for (int i = 0; i < n; i++) {
        void *page = (void *)((uintptr_t)blocks[i] & ~(uintptr_t)(PAGE - 1));
        int status = -1;
        if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &status, 0) == 0 && status >= 0 &&
            status < 2)
            on[status]++;
    }
    printf("blocks on node 0: %lu, on node 1: %lu\n", on[0], on[1]);
    for (int i = n / 2; i < n; i++)
        free(blocks[i]);
    for (int i = n / 2; i < n; i++) {
        blocks[i] =
            i % 2 ? malloc(BYTES)
                  : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!blocks[i] || blocks[i] == MAP_FAILED) {
            printf("block %d cannot be allocated again\n", i);
            return 1;
        }
        fill(blocks[i], (uint64_t)i);
    }
    if (!check_all(blocks, n, "after allocating again"))
        return 1;
    return on[0] > 0 && on[1] > 0 ? 0 : 3; /* 3: all fitted one node, nothing was tried */
}
