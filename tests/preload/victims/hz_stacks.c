/* SPDX-License-Identifier: BSD-2-Clause
 * Threads with 64 MiB stacks, and threads with the smallest stacks there are,
 * which are the first to allocate (the library may start to steer just there). */
#include "victim.h"

#include <limits.h>

static void *tiny(void *arg)
{
    uintptr_t n = (uintptr_t)arg;
    void *p[8];
    for (uintptr_t i = 0; i < 8; i++) {
        p[i] = i % 3 == 2 ? calloc(1, (n + i) * 5003 % 700000 + 1) : malloc((n + i) * 7919 % 90000 + 1);
        CHECK(p[i]);
        *(char *)p[i] = 1;
    }
    p[0] = realloc(p[0], 200000);
    for (int i = 0; i < 8; i++)
        free(p[i]);
    return NULL;
}

static void *eat(void *arg)
{
    volatile char frame[1 << 20];
    for (unsigned i = 0; i < sizeof frame; i += 4096)
        frame[i] = 1;
    long left = (long)arg;
    void *r = left ? eat((void *)(left - 1)) : malloc(100);
    return frame[4096] ? r : NULL;
}

/* Grows the process past the default start of steering (16 MiB) in a tiny stack. */
static void *tiny_grower(void *arg)
{
    char **kept = arg;
    for (int i = 0; i < 600; i++) {
        kept[i] = malloc(60000);
        memset(kept[i], i, 60000);
    }
    return NULL;
}

int main(void)
{
    static char *kept[600];
    pthread_attr_t a;
    pthread_t t[8];
    CHECK(pthread_attr_init(&a) == 0 && pthread_attr_setstacksize(&a, (size_t)PTHREAD_STACK_MIN) == 0);
    CHECK(pthread_create(&t[0], &a, tiny_grower, kept) == 0 && pthread_join(t[0], NULL) == 0);
    for (uintptr_t n = 0; n < 1000; n += 4) {
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(pthread_create(&t[i], &a, tiny, (void *)(n + i)) == 0);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_join(t[i], NULL) == 0);
    }
    for (int i = 0; i < 600; i++) {
        CHECK(kept[i][59999] == (char)i);
        free(kept[i]);
    }
    CHECK(pthread_attr_setstacksize(&a, (size_t)64 << 20) == 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            CHECK(pthread_create(&t[i], &a, eat, (void *)20L) == 0);
        for (int i = 0; i < 8; i++) {
            void *r;
            CHECK(pthread_join(t[i], &r) == 0 && r);
            free(r);
        }
    }
    puts("ok");
    return 0;
}
