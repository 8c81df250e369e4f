/* SPDX-License-Identifier: BSD-2-Clause
 * exit() while four threads allocate: exit status and output are kept, whatever
 * is torn down meanwhile. Also processes that end by a signal. */
#include "victim.h"

#include <sys/resource.h>

static void *churn(void *arg)
{
    uint64_t s = (uintptr_t)arg + 1;
    for (;;) {
        void *slot[50];
        for (int i = 0; i < 50; i++) {
            slot[i] = malloc(random_size(&s) + 1);
            *(char *)slot[i] = 1;
        }
        for (int i = 0; i < 50; i++)
            free(slot[i]);
    }
    return NULL;
}

int main(void)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int bad = 0;
    for (int round = 0; round < 40; round++) {
        int out[2];
        CHECK(pipe(out) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            dup2(out[1], 1);
            close(out[0]);
            close(out[1]);
            char *buf = malloc(9000);
            setvbuf(stdout, buf, _IOFBF, 9000);
            pthread_t t;
            for (uintptr_t i = 0; i < 4; i++)
                CHECK(pthread_create(&t, NULL, churn, (void *)i) == 0);
            nap_us(2000);
            printf("%04000d", round);
            if (round % 10 == 9)
                quick_exit(round);
            exit(round);
        }
        close(out[1]);
        char got[5000];
        size_t n = 0;
        ssize_t r;
        while ((r = read(out[0], got + n, sizeof got - n)) > 0)
            n += (size_t)r;
        close(out[0]);
        int st = reap(pid);
        bad += st != round || (round % 10 != 9 && (n != 4000 || got[0] != '0'));
    }
    printf("bad ends: %d\n", bad);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        abort();
    printf("abort %d\n", reap(pid));
    pid = fork();
    if (pid == 0) {
        *(volatile int *)16 = 1;
        _exit(0);
    }
    printf("fault %d\n", reap(pid));
    fflush(stdout);
    raise(SIGTERM);
    return 98;
}
