/* SPDX-License-Identifier: BSD-2-Clause
 * A filter that kills whoever makes another call than those for memory, read, write and exit falls
 * on a program with threads, at a moment that chance chooses: before anything of ours has begun,
 * while memory is placed, while pages move, while the program ends. `hz_filter_moment N` runs
 * itself N times. */
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS 2
#define BLOCKS  96
#define LET(n)                                                                                     \
    BPF_JUMP(BPF_JMP + BPF_JEQ + BPF_K, SYS_##n, 0, 1), BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_ALLOW)

extern char **environ;

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD + BPF_W + BPF_ABS, offsetof(struct seccomp_data, nr)),
    LET(read),
    LET(write),
    LET(exit),
    LET(exit_group),
    LET(rt_sigreturn),
    LET(mmap),
    LET(munmap),
    LET(mremap),
    LET(madvise),
    LET(mprotect),
    LET(brk),
    LET(futex),
    BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

static volatile int confined, ending;
/* A thread's own begin and end are more calls. */
static pthread_barrier_t begun;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;

static unsigned next(unsigned *x)
{
    *x = *x * 1103515245 + 12345;
    return *x >> 8;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* no system call */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Blocks of all sizes, and mappings of the program's own. */
static void churn(unsigned *x, void **block, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        unsigned k = next(x) % BLOCKS;
        size_t n = next(x) % 16 ? next(x) % 300000 : 1500000;
        if (next(x) % 3) {
            free(block[k]);
            CHECK(block[k] = malloc(n + 1));
        } else {
            CHECK(block[k] = realloc(block[k], n + 1));
        }
        memset(block[k], (int)k, n / 4 + 1);
    }
    char *m = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(m != MAP_FAILED);
    memset(m, 1, 1 << 20);
    CHECK(munmap(m, 2 << 20) == 0);
}

static void *work(void *arg)
{
    unsigned x = (unsigned)(size_t)arg;
    void *block[BLOCKS] = {NULL};
    block[0] = malloc(1);
    pthread_barrier_wait(&begun);
    for (;;)
        churn(&x, block, 20);
    return NULL;
}

/* Before the threads, at once, soon, at any time, or while the program ends. */
enum moment { BEFORE, AT_ONCE, SOON, ANY, AT_EXIT, MOMENTS };

static useconds_t delay_of(enum moment m, unsigned *x)
{
    static const unsigned most_us[MOMENTS] = {0, 500, 20000, 300000, 3000};
    return most_us[m] ? next(x) % most_us[m] : 0;
}

static void *confine(void *arg)
{
    unsigned x = (unsigned)(size_t)arg;
    enum moment when = (enum moment)(x % MOMENTS);
    useconds_t us = delay_of(when, &x);
    if (when != BEFORE)
        pthread_barrier_wait(&begun);
    while (when == AT_EXIT && !ending)
        nap_us(50);
    nap_us(us);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    confined = 1;
    if (when != BEFORE)
        pthread_mutex_lock(&never);
    return NULL;
}

static int one(unsigned seed)
{
    unsigned x = seed;
    void *block[BLOCKS] = {NULL}, *arg = (void *)(size_t)seed;
    pthread_t t;
    /* At its first block the libc asks for a random number, at the shrinking of an arena for a
     * file. */
    CHECK(mallopt(M_ARENA_MAX, 1) == 1);
    free(OPAQUE(malloc(1)));
    if (seed % MOMENTS == BEFORE) {
        (void)confine(arg);
    } else {
        pthread_barrier_init(&begun, NULL, WORKERS + 2);
        pthread_mutex_lock(&never);
        for (unsigned i = 0; i < WORKERS; i++)
            CHECK(pthread_create(&t, NULL, work, (void *)(size_t)(seed + i)) == 0);
        CHECK(pthread_create(&t, NULL, confine, arg) == 0);
        pthread_barrier_wait(&begun);
    }
    while (!confined && seed % MOMENTS != AT_EXIT)
        churn(&x, block, 20);
    for (double end = seconds() + 0.1; seconds() < end;)
        churn(&x, block, 20);
    ending = 1;
    return 0; /* by exit: the report is written, or not */
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    if (argc > 2)
        return one((unsigned)atoi(argv[2]));
    for (int i = 0, n = atoi(argv[1]); i < n; i++) {
        char seed[16];
        char *again[] = {argv[0], argv[1], seed, NULL};
        int status;
        pid_t child;
        (void)snprintf(seed, sizeof seed, "%d", i);
        CHECK(posix_spawn(&child, argv[0], NULL, NULL, again, environ) == 0);
        CHECK(waitpid(child, &status, 0) == child);
        if (status != 0) {
            fprintf(stderr, "seed %d: status %#x\n", i, (unsigned)status);
            return 1;
        }
    }
    puts("ok");
    return 0;
}
