/* SPDX-License-Identifier: BSD-2-Clause
 * Two mappings that are one to the kernel grow together by mremap: also when one of them alone
 * is being watched, and when they never became one since the first was watched already. */
#include <stdbool.h>

#include "victim.h"

#define MIB ((size_t)1 << 20)
#define RW  (PROT_READ | PROT_WRITE)

static char *anon(void *at, size_t bytes, int flags)
{
    char *p = mmap(at, bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(p != MAP_FAILED && (!(flags & MAP_FIXED) || p == at));
    return p;
}

/* 9 MiB with one of 1 MiB behind or before, in a room whose end is free or not; `early`: made one
 * before the large one is seen. */
static char *pair(int i, bool early, bool behind, bool may_grow)
{
    char *p = mmap(NULL, 60 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *small = behind ? p + 9 * MIB : p, *large = behind ? p : p + MIB;
    CHECK(p != MAP_FAILED && munmap(p + 10 * MIB, 50 * MIB) == 0);
    if (!may_grow)
        CHECK(anon(p + 10 * MIB, MIB, MAP_FIXED | MAP_NORESERVE) &&
              !mprotect(p + 10 * MIB, MIB, PROT_READ));
    anon(large, 9 * MIB, MAP_FIXED);
    if (early)
        anon(small, MIB, MAP_FIXED);
    large[0] = 1; /* so that they stay one: parts that are touched apart never join again */
    fill(early ? p : large, early ? 10 * MIB : 9 * MIB, (uint64_t)i);
    nap_us(150000);
    if (!early)
        anon(small, MIB, MAP_FIXED);
    fill(p, 10 * MIB, (uint64_t)i + 1);
    return p;
}

static void grow(int i, char *old, int flags, void *target)
{
    char *p = mremap(old, 10 * MIB, 40 * MIB, flags, target);
    CHECK(p != MAP_FAILED && (!target || p == target) && (flags || p == old));
    CHECK(holds(p, 10 * MIB, (uint64_t)i + 1) && all_zero(p + 10 * MIB, 30 * MIB));
    memset(p + 39 * MIB, i, MIB);
    CHECK(munmap(p, 40 * MIB) == 0);
}

int main(void)
{
    for (int i = 0; i < 300; i++)
        memset(malloc(100000), i, 100000);
    for (int i = 0; i < 8; i++)
        grow(i, pair(i, true, true, i % 2), MREMAP_MAYMOVE, NULL);
    for (int i = 0; i < 2; i++) { /* where they are, elsewhere, and to a place that is named */
        bool behind = i == 0;
        grow(i, pair(i, false, behind, true), 0, NULL);
        grow(i, pair(i, false, behind, false), MREMAP_MAYMOVE, NULL);
        grow(i, pair(i, false, behind, false), MREMAP_MAYMOVE | MREMAP_FIXED,
             anon(NULL, 40 * MIB, 0));
    }
    /* What fails stays where it was: without room, and with a hole. */
    char *p = pair(6, false, true, false);
    CHECK(mremap(p, 10 * MIB, 40 * MIB, 0) == MAP_FAILED && errno == ENOMEM &&
          holds(p, 10 * MIB, 7));
    CHECK(munmap(p + 5 * MIB, MIB) == 0);
    CHECK(mremap(p, 10 * MIB, 40 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    CHECK(holds(p, 5 * MIB, 7));
    fill(p + 6 * MIB, 4 * MIB, 7);
    puts("ok");
    return 0;
}
