/* SPDX-License-Identifier: BSD-2-Clause
 * Two mappings that are one to the kernel grow together by mremap, also when one of them alone
 * is being watched. */
#include "victim.h"

#define MIB ((size_t)1 << 20)

int main(void)
{
    for (int i = 0; i < 300; i++)
        memset(malloc(100000), i, 100000);
    for (int i = 0; i < 12; i++) {
        char *p = mmap(NULL, 10 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && munmap(p + 9 * MIB, MIB) == 0);
        char *q = mmap(p + 9 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(q == p + 9 * MIB);
        p[0] = 1; /* so that they stay one: parts that are touched apart never join again */
        fill(p, 10 * MIB, (uint64_t)i);
        nap_us(150000);
        fill(p, 10 * MIB, (uint64_t)i + 1);
        p = mremap(p, 10 * MIB, 40 * MIB, MREMAP_MAYMOVE);
        CHECK(p != MAP_FAILED);
        CHECK(holds(p, 10 * MIB, (uint64_t)i + 1) && all_zero(p + 10 * MIB, 30 * MIB));
        memset(p + 20 * MIB, i, MIB);
        CHECK(munmap(p, 40 * MIB) == 0);
    }
    puts("ok");
    return 0;
}
