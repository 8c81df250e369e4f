/* SPDX-License-Identifier: BSD-2-Clause
 * A program linked with an allocator of its own, which it uses through both
 * interfaces: what mallocx gave goes to free, realloc and malloc_usable_size. */
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *churn(void *arg)
{
    unsigned long seed = (unsigned long)arg;
    char *slot[64] = {0};
    size_t size[64] = {0};
    for (long i = 0; i < 60000; i++) {
        seed = seed * 6364136223846793005ul + 1442695040888963407ul;
        unsigned k = (unsigned)(seed >> 58);
        if (slot[k] && (slot[k][0] != (char)k || slot[k][size[k] - 1] != (char)k))
            return (void *)1;
        free(slot[k]);
        size[k] = (seed >> 33) % 5000 + 1;
        slot[k] = i % 3 ? malloc(size[k]) : mallocx(size[k], MALLOCX_ALIGN(64));
        memset(slot[k], (int)k, size[k]);
    }
    for (int k = 0; k < 64; k++)
        free(slot[k]);
    return NULL;
}

int main(void)
{
    pthread_t t[4];
    long bad = 0;
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *r;
        pthread_join(t[i], &r);
        bad += (long)r;
    }
    char *p = mallocx(100, MALLOCX_ZERO);
    p[99] = 7;
    printf("usable %d\n", malloc_usable_size(p) >= 100);
    p = realloc(p, 100000);
    printf("kept %d %d\n", p[99], p[0]);
    free(p);
    p = mallocx(3000000, 0);
    printf("size %d\n", sallocx(p, 0) >= 3000000);
    p = rallocx(p, 4000000, 0);
    free(p);
    printf("bad %ld\n", bad);
    const char *version = NULL;
    size_t len = sizeof version;
    printf("mallctl %d\n", mallctl("version", &version, &len, NULL, 0));
    return 5;
}
