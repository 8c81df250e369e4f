/* SPDX-License-Identifier: BSD-2-Clause
 * Built with the thread sanitizer: blocks go from thread to thread, and no race is there. */
#include "victim.h"

static void *work(void *arg)
{
    for (size_t i = 0; i < 2000; i++) {
        size_t n = 16 + i % 5000;
        char *p = malloc(n);
        CHECK(p);
        memset(p, (int)(uintptr_t)arg, n);
        free(p);
    }
    return malloc(100);
}

int main(void)
{
    for (int round = 0; round < 4; round++) {
        pthread_t t[4];
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
        for (int i = 0; i < 4; i++) {
            void *p;
            CHECK(pthread_join(t[i], &p) == 0 && p);
            memset(p, 1, 100);
            free(p);
        }
    }
    puts("ok");
    return 0;
}
