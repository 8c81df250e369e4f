/* SPDX-License-Identifier: BSD-2-Clause
 * A program in a PID namespace of its own (p, P: once its memory is placed), under a root without
 * /proc (c, C), whose main leaves before its last thread (l). It forks, and parent and children
 * keep theirs. */
#include "victim.h"

#include <sched.h>

#define BLOCKS 40
#define N      ((size_t)500000)

static int has(const char *modes, char mode)
{
    return strchr(modes, mode) != NULL;
}

static void be_placed(void)
{
    char *p = malloc((size_t)20 << 20);
    memset(p, 1, (size_t)20 << 20);
    nap_us(500000);
}

static void new_root(void)
{
    char dir[] = "root-XXXXXX";
    CHECK(mkdtemp(dir) && chdir(dir) == 0 && chroot(".") == 0);
    CHECK(access("/proc", F_OK) == -1);
}

static void *no_work(void *arg)
{
    pthread_exit(arg);
}

static void *last_thread(void *arg)
{
    nap_us(300000);
    for (size_t i = 0; i < 200; i++) {
        char *p = malloc(i * 3000 + 1);
        fill(p, i * 3000 + 1, i);
        free(p);
    }
    puts("last thread");
    return arg;
}

static void at_exit(void)
{
    puts("at exit");
    fflush(stdout);
}

static void fork_some(void)
{
    char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        fill(block[i] = malloc(N), N, (uint64_t)i);
    for (int round = 0; round < 3; round++) {
        pid_t p = fork();
        if (p == 0) {
            for (int i = 0; i < BLOCKS; i++) {
                CHECK(holds(block[i], N, (uint64_t)i));
                memset(block[i], 0, N);
                free(block[i]);
            }
            char *more = malloc(4 * N);
            memset(more, 1, 4 * N);
            _exit(3);
        }
        CHECK(p > 0 && reap(p) == 3);
        nap_us(100000);
    }
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(holds(block[i], N, (uint64_t)i));
        free(block[i]);
    }
}

int main(int argc, char **argv)
{
    const char *modes = argc > 1 ? argv[1] : "";
    pthread_t t;
    CHECK(pthread_create(&t, NULL, no_work, NULL) == 0 &&
          pthread_join(t, NULL) == 0); /* libgcc is there */
    if (has(modes, 'P') || has(modes, 'C'))
        be_placed();
    if (has(modes, 'p') || has(modes, 'P')) {
        CHECK(unshare(CLONE_NEWPID) == 0);
        pid_t p = fork();
        if (p != 0) {
            printf("first process: %d\n", reap(p));
            return 0;
        }
        CHECK(getpid() == 1);
    }
    if (has(modes, 'c') || has(modes, 'C'))
        new_root();
    atexit(at_exit);
    fork_some();
    if (has(modes, 'l')) {
        CHECK(pthread_create(&t, NULL, last_thread, NULL) == 0);
        pthread_exit(NULL);
    }
    puts("ok");
    return 0;
}
