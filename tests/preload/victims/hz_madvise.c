/* SPDX-License-Identifier: BSD-2-Clause
 * Page advice and protection on aligned blocks of the heap, as allocators do
 * that lay their arenas into blocks of malloc: MADV_DONTNEED gives zero pages, the kernel takes all
 * advice for anonymous memory, and a child gets what it shall, also of blocks that come next. */
#include "victim.h"

#define MIB ((size_t)1 << 20)

/* What p[0 .. n) is in a child: 0 or `seed`. */
static void in_child(const char *p, size_t n, uint64_t seed)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(seed ? !holds(p, n, seed) : !all_zero(p, n));
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void advised(void)
{
    size_t n = 8 * MIB;
    for (uint64_t round = 1; round < 6; round++) {
        char *p = aligned_alloc(4096, n);
        CHECK(p);
        fill(p, n, round);
        if (round == 3)
            in_child(p, n, round); /* all of it is private from here on */
        CHECK(madvise(p + MIB, MIB, MADV_WIPEONFORK) == 0 && holds(p, n, round));
        in_child(p, MIB, round);
        in_child(p + MIB, MIB, 0);
        CHECK(madvise(p + MIB, MIB, MADV_KEEPONFORK) == 0 && holds(p, n, round));
        in_child(p, n, round);
        CHECK(madvise(p + 2 * MIB, MIB, MADV_FREE) == 0);
        fill(p + 2 * MIB, MIB, round);
        CHECK(holds(p + 2 * MIB, MIB, round));
        /* Given back and taken again, as a collector does. */
        CHECK(mprotect(p + 3 * MIB, MIB, PROT_NONE) == 0 &&
              madvise(p + 3 * MIB, MIB, MADV_DONTNEED) == 0);
        in_child(p, MIB, round);
        CHECK(mprotect(p + 3 * MIB, MIB, PROT_READ | PROT_WRITE) == 0 &&
              all_zero(p + 3 * MIB, MIB));
        fill(p + 3 * MIB, MIB, round + 1);
        in_child(p + 3 * MIB, MIB, round + 1);
        CHECK(holds(p, MIB, round) && holds(p + 3 * MIB, MIB, round + 1));
        free(p);
    }
}

/* A child that lives on sees nothing of what its parent does with the pages meanwhile. */
static void beside_a_child(void)
{
    int go[2], status;
    char *p = aligned_alloc(4096, 8 * MIB), c = 0;
    CHECK(p && pipe(go) == 0);
    fill(p, 8 * MIB, 5);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(read(go[0], &c, 1) != 1 || !holds(p, 8 * MIB, 5));
    for (int round = 0; round < 4; round++) {
        CHECK(madvise(p + MIB, 4 * MIB, MADV_DONTNEED) == 0 && all_zero(p + MIB, 4 * MIB));
        fill(p, 8 * MIB, 6);
        free(p);
        for (int i = 0; i < 3; i++)
            free(memset(malloc(20 * MIB), 7, 20 * MIB));
        p = aligned_alloc(4096, 8 * MIB);
        CHECK(p);
        fill(p, 8 * MIB, 8);
    }
    CHECK(write(go[1], &c, 1) == 1 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(holds(p, 8 * MIB, 8));
    free(p);
}

int main(void)
{
    for (size_t n = 16384; n <= 8 * MIB; n *= 4) {
        char *p = aligned_alloc(4096, n), *q = aligned_alloc(4096, n);
        CHECK(p && q);
        fill(p, n, 1);
        fill(q, n, 2);
        CHECK(madvise(p + 4096, n - 8192, MADV_DONTNEED) == 0);
        CHECK(all_zero(p + 4096, n - 8192) && holds(p, 4096, 1) && holds(q, n, 2));
        fill(p, n, 3);
        CHECK(holds(p, n, 3) && mlock(p, 8192) == 0 && munlock(p, 8192) == 0);
        CHECK(mprotect(q, 4096, PROT_READ) == 0 && holds(q, n, 2) &&
              mprotect(q, 4096, PROT_READ | PROT_WRITE) == 0);
        free(p);
        free(q);
    }
    advised();
    beside_a_child();
    puts("ok");
    return 0;
}
