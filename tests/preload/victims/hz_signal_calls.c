/* SPDX-License-Identifier: BSD-2-Clause
 * Handlers that come in the middle of malloc, free, mmap and munmap of their own thread, and do
 * what is allowed there or what programs do all the same. Argument: exit, fork or map. */
#include "victim.h"

#include <sys/time.h>

enum { FORKS = 150, MAPS = 1500, EXITS = 60 };
static volatile sig_atomic_t calls;

static void tick_every(long us, void (*fn)(int))
{
    struct sigaction sa = {.sa_handler = fn, .sa_flags = SA_RESTART};
    struct itimerval it = {{0, us}, {0, us}};
    CHECK(sigaction(SIGALRM, &sa, NULL) == 0 && setitimer(ITIMER_REAL, &it, NULL) == 0);
}

static void no_ticks(void)
{
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &none, NULL);
}

/* Large and small blocks in turn: caches, spans and runs are all in somebody's hands at times. */
static void churn(uint64_t seed, int rounds)
{
    static unsigned char *slot[64];
    static size_t size[64];
    for (int i = 0; i < rounds; i++) {
        unsigned k = (unsigned)(rnd(&seed) % 64);
        if (slot[k])
            CHECK(slot[k][0] == k && slot[k][size[k] - 1] == k);
        free(slot[k]);
        size[k] = rnd(&seed) % (i % 4 ? 3000 : 300000) + 1;
        slot[k] = malloc(size[k]);
        CHECK(slot[k] != NULL);
        slot[k][0] = slot[k][size[k] - 1] = (unsigned char)k;
    }
}

static void leave(int sig)
{
    (void)sig;
    exit(41);
}

static void exits(void)
{
    for (int i = 0; i < EXITS; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            tick_every(1000 + i * 173, leave);
            for (;;)
                churn((uint64_t)i, 1000);
        }
        CHECK(reap(pid) == 41);
    }
}

/* The next tick is asked for by hand: where a fork takes longer than a tick, nothing else would
 * be done. The child goes on with what was interrupted, now and then. */
static void split(int sig)
{
    (void)sig;
    pid_t pid = fork();
    if (pid == 0) {
        if (calls % 10)
            _exit(0);
        no_ticks();
        calls = FORKS;
        return;
    }
    if (pid > 0)
        CHECK(reap(pid) == 0);
    calls++;
    struct itimerval it = {{0, 0}, {0, 300 + calls * 7}};
    setitimer(ITIMER_REAL, &it, NULL);
}

static void forks(void)
{
    pid_t self = getpid();
    struct sigaction sa = {.sa_handler = split, .sa_flags = SA_RESTART};
    struct itimerval it = {{0, 0}, {0, 300}};
    CHECK(sigaction(SIGALRM, &sa, NULL) == 0 && setitimer(ITIMER_REAL, &it, NULL) == 0);
    for (uint64_t i = 0; calls < FORKS; i++)
        churn(i, 100);
    no_ticks();
    churn(5, 3000);
    if (getpid() != self)
        _exit(0);
}

static void map_some(int sig)
{
    size_t n = 2 << 20;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)sig;
    CHECK(p != MAP_FAILED);
    p[0] = 1;
    CHECK(munmap(p, n) == 0);
    calls++;
}

static void maps(void)
{
    size_t n = 2 << 20;
    CHECK(mmap(NULL, 2 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
          MAP_FAILED);
    tick_every(300, map_some);
    for (uint64_t i = 0; calls < MAPS; i++) {
        void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && munmap(p, n) == 0);
        churn(i, 10);
    }
    no_ticks();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "exit";
    alarm(0);
    if (strcmp(what, "exit") == 0)
        exits();
    else if (strcmp(what, "fork") == 0)
        forks();
    else
        maps();
    puts("ok");
    return 0;
}
