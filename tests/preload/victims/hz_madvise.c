/* SPDX-License-Identifier: BSD-2-Clause
 * Page advice and protection on aligned blocks of the heap, as allocators do
 * that lay their arenas into blocks of malloc: MADV_DONTNEED gives zero pages. */
#include "victim.h"

#define MIB ((size_t)1 << 20)

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
        CHECK(mprotect(q, 4096, PROT_READ) == 0 && holds(q, n, 2) && mprotect(q, 4096, PROT_READ | PROT_WRITE) == 0);
        free(p);
        free(q);
    }
    puts("ok");
    return 0;
}
