/* SPDX-License-Identifier: BSD-2-Clause
 * mremap of mappings large enough to be steered: grow, shrink, move, to a fixed
 * place, errors; content and zero tail. */
#include "victim.h"

#define MIB ((size_t)1 << 20)

/* Is what was unmapped not mapped any more? A thread of the library may map in the hole at that moment,
 * so once is no proof. */
static int leaves_holes(size_t n)
{
    int mapped = 0;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    fill(p, n, n);
    char *q = mremap(p, n, 2 * n, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && holds(q, n, n) && q[n] == 0 && q[2 * n - 1] == 0);
    fill(q, 2 * n, n + 1);
    p = mremap(q, 2 * n, n / 2, 0);
    CHECK(p == q && holds(p, n / 2, n + 1));
    mapped |= is_mapped(q + n, 1);
    char *place = mmap(NULL, 4 * n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    q = mremap(p, n / 2, n, MREMAP_MAYMOVE | MREMAP_FIXED, place + n);
    CHECK(q == place + n && holds(q, n / 2, n + 1) && q[n - 1] == 0);
    mapped |= is_mapped(p, 1);
    CHECK(is_mapped(place, 1));
    memset(q, 3, n);
    char *half = mremap(q + n / 2, n / 2, n / 2, MREMAP_MAYMOVE | MREMAP_FIXED, place); /* a part of a mapping */
    CHECK(half == place && half[0] == 3 && q[0] == 3);
    mapped |= is_mapped(q + n / 2, 1);
    /* Not the part that left: there somebody else's may be by now. */
    CHECK(munmap(place, n + n / 2) == 0 && munmap(place + 2 * n, 2 * n) == 0);
    return !mapped;
}

int main(void)
{
    for (size_t n = MIB; n <= 32 * MIB; n *= 2) {
        int tries = 0;
        while (!leaves_holes(n))
            CHECK(++tries < 10);
    }
    errno = 0;
    CHECK(mremap((void *)4096, MIB, 2 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    char *p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = 0;
    CHECK(mremap(p + 1, MIB, 2 * MIB, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mremap(p, MIB, OPAQUE((size_t)0), MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
    errno = 0;
    CHECK(mremap(p, 2 * MIB, (size_t)1 << 60, MREMAP_MAYMOVE) == MAP_FAILED && errno);
    printf("too large: %d\n", errno); /* the kernel's version decides which; the preload may not */
    memset(p, 1, 2 * MIB);
    char *q = mremap(p, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    if (q != MAP_FAILED)
        CHECK(q[5] == 1 && p[5] == 0);
    puts("ok");
    return 0;
}
