/* SPDX-License-Identifier: BSD-2-Clause
 * A program that defines malloc and free, and neither calloc nor realloc: it lives as long as nobody
 * calls realloc on a block of its own, and no library of ours may be the first. */
#include "victim.h"

static char pool[64 << 20];
static size_t used;

void *malloc(size_t n)
{
    size_t take = (n + 31) & ~(size_t)15, at = __atomic_fetch_add(&used, take, __ATOMIC_SEQ_CST);
    return at + take <= sizeof pool ? pool + at : NULL;
}

void free(void *p)
{
    CHECK(!p || ((char *)p >= pool && (char *)p < pool + sizeof pool));
}

int main(void)
{
    for (int i = 0; i < 1000; i++) {
        char *p = malloc((size_t)i * 10 + 1);
        CHECK(p);
        memset(p, i, (size_t)i * 10 + 1);
        free(p);
    }
    char *m = mmap(NULL, 80 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(m != MAP_FAILED);
    memset(m, 1, 80 << 20);
    nap_us(300000);
    puts("ok");
    return 0;
}
