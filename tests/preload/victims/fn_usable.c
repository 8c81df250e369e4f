/* SPDX-License-Identifier: BSD-2-Clause
 * malloc_usable_size: all that it promises may be written, and is kept by realloc;
 * and the glibc extras that tools call (mallinfo2, malloc_trim, mallopt ...). */
#include "victim.h"

#include <malloc.h>

int main(void)
{
    void *volatile null = NULL;
    CHECK(malloc_usable_size(null) == 0);
    char *p[3000];
    size_t n[3000];
    uint64_t s = 11;
    for (int i = 0; i < 3000; i++) {
        p[i] = i % 5 ? malloc(random_size(&s)) : memalign(128, random_size(&s));
        n[i] = malloc_usable_size(p[i]);
        fill(p[i], n[i], (uint64_t)i);
    }
    for (int i = 0; i < 3000; i++) {
        CHECK(malloc_usable_size(p[i]) == n[i] && holds(p[i], n[i], (uint64_t)i));
        p[i] = realloc(p[i], n[i] + 100);
        CHECK(p[i] && holds(p[i], n[i] & ~(size_t)7, (uint64_t)i));
        free(p[i]);
    }
    struct mallinfo2 m = mallinfo2();
    (void)m;
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_ARENA_MAX, 2);
    malloc_trim(0);
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    malloc_info(0, f);
    fclose(f);
    CHECK(len > 0);
    free(text);
    puts("ok");
    return 0;
}
