/* SPDX-License-Identifier: BSD-2-Clause
 * Threads that come and go, four at a time, each with a few blocks, some of
 * which another thread frees: resident and virtual size must not grow with
 * their number. Argument: how many threads. */
#include "victim.h"

static void *_Atomic handed[16];

static void *thread(void *arg)
{
    uintptr_t n = (uintptr_t)arg;
    char *p[12];
    for (unsigned i = 0; i < 12; i++) {
        p[i] = malloc((n * 37 + i * 601) % 20000 + 1);
        CHECK(p[i]);
        p[i][0] = (char)i;
    }
    for (unsigned i = 1; i < 12; i++)
        free(p[i]);
    free(__atomic_exchange_n(&handed[n % 16], p[0], __ATOMIC_ACQ_REL));
    return NULL;
}

int main(int argc, char **argv)
{
    long total = argc > 1 ? atol(argv[1]) : 20000;
    size_t rss = 0, vm = 0;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 128 * 1024);
    for (long n = 0; n < total; n += 4) {
        pthread_t t[4];
        for (long i = 0; i < 4; i++)
            CHECK(pthread_create(&t[i], &a, thread, (void *)(n + i)) == 0);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_join(t[i], NULL) == 0);
        if (n / 4 == total / 40) { /* a tenth has been: all that is kept has been seen */
            rss = statm(2);
            vm = statm(1);
        }
    }
    long grown = ((long)statm(2) - (long)rss) >> 20, mapped = ((long)statm(1) - (long)vm) >> 20;
    for (int i = 0; i < 16; i++)
        free(handed[i]);
    /* glibc adds arenas of 64 MiB of address space now and then; a leak of 64 KiB a thread is more. */
    if (grown > 6 || mapped > 1024) {
        printf("resident grew by %ld MiB, address space by %ld MiB\n", grown, mapped);
        return 1;
    }
    puts("ok");
    return 0;
}
