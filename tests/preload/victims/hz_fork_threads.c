/* SPDX-License-Identifier: BSD-2-Clause
 * fork while other threads allocate: a lock that was held at the fork must not
 * stop the child. atfork handlers allocate too. Argument: number of forks. */
#include "victim.h"

static volatile int stop;
static void *from_prepare;
static long child_bad, child_started;

static void *churn(void *arg)
{
    uint64_t s = (uint64_t)(uintptr_t)arg + 1;
    void *slot[200] = {0};
    while (!stop) {
        unsigned k = (unsigned)(rnd(&s) % 200);
        free(slot[k]);
        size_t n = random_size(&s);
        slot[k] = rnd(&s) % 4 ? malloc(n) : realloc(calloc(1, n / 2 + 1), n + 1);
        if (rnd(&s) % 200 == 0) {
            void *m = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (m != MAP_FAILED)
                munmap(m, 2 << 20);
        }
    }
    for (int k = 0; k < 200; k++)
        free(slot[k]);
    return NULL;
}

static void prepare(void)
{
    from_prepare = malloc(3000);
}

static void parent(void)
{
    free(from_prepare);
}

static void child(void)
{
    free(from_prepare);
    free(malloc(100000));
}

int main(int argc, char **argv)
{
    int forks = argc > 1 ? atoi(argv[1]) : 200;
    pthread_t t[4];
    pthread_atfork(prepare, parent, child);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&t[i], NULL, churn, (void *)i) == 0);
    for (int f = 0; f < forks; f++) {
        char *mine = malloc(20000);
        fill(mine, 20000, (uint64_t)f);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(1200); /* a lock that nobody will give back */
            CHECK(holds(mine, 20000, (uint64_t)f));
            free(mine);
            uint64_t s = (uint64_t)f + 99;
            for (int i = 0; i < 300; i++)
                free(malloc(random_size(&s)));
            pthread_t in_child;
            if (f % 10 == 0) {
                stop = 1;
                CHECK(pthread_create(&in_child, NULL, churn, (void *)7) == 0 && pthread_join(in_child, NULL) == 0);
            }
            if (f % 3 == 0)
                exit(f % 100); /* with exit handlers */
            _exit(f % 100);
        }
        child_started++;
        child_bad += reap(pid) != f % 100;
        free(mine);
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    printf("%ld children, %ld bad\n", child_started, child_bad);
    return child_bad != 0;
}
