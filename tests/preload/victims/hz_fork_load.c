/* SPDX-License-Identifier: BSD-2-Clause
 * Threads fork while memory grows, so that forks meet every moment in which placement begins. Each child
 * grows and forks again: nothing that it waits for may have been held by a thread that it does not have. */
#include "victim.h"

enum { THREADS = 3, FORKS = 25, LARGE = 60 };

static void handler(void)
{
    free(malloc(100));
}

static void child(void)
{
    alarm(60);
    for (int k = 0; k < 12; k++)
        memset(malloc(700000), 1, 700000);
    pid_t pid = fork();
    if (pid == 0) {
        memset(malloc(3000000), 1, 3000000);
        _exit(1);
    }
    _exit(reap(pid) == 1 ? 3 : 4);
}

static void *forks(void *arg)
{
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            child();
        CHECK(reap(pid) == 3);
    }
    return arg;
}

int main(void)
{
    pthread_t t[THREADS];
    alarm(200);
    CHECK(pthread_atfork(handler, handler, handler) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, forks, NULL) == 0);
    for (int i = 0; i < LARGE; i++) {
        memset(malloc(300000), 1, 300000);
        nap_us(1000);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
    puts("ok");
    return 0;
}
