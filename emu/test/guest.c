/* SPDX-License-Identifier: BSD-2-Clause
 * What programs do beside computing, to be run as it is and under QEMU: guest PART. Prints
 * what must be the same in both, or what the part is about. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pmemu.h"

#pragma weak pmemu_vtime_ns
#pragma weak pmemu_set_tier
#pragma weak pmemu_tier_of
#pragma weak pmemu_event

#define THREADS 8

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static uint64_t total;
static int turn;

static __attribute__((noinline)) uint64_t spin(uint64_t n)
{
    volatile uint64_t x = 1;
    for (uint64_t i = 0; i < n; i++)
        x = x * 6364136223846793005u + 1;
    return x;
}

static double now_ms(clockid_t c)
{
    struct timespec t;
    clock_gettime(c, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void *count(void *arg)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&mutex);
        total += (uintptr_t)arg;
        pthread_mutex_unlock(&mutex);
        if (i % 20 == 0)
            pthread_barrier_wait(&barrier);
    }
    return arg;
}

static int threads(void)
{
    pthread_t t[THREADS];
    uintptr_t sum = 0;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, count, (void *)(i + 1)) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++) {
        void *r;
        pthread_join(t[i], &r);
        sum += (uintptr_t)r;
    }
    printf("total %llu joined %lu\n", (unsigned long long)total, (unsigned long)sum);
    return 0;
}

/* Two threads take turns: in virtual time the work of both adds up. */
static void *take_turns(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != me)
            pthread_cond_wait(&cond, &mutex);
        total += spin(20000) & 1;
        turn = 1 - me;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int turns(void)
{
    pthread_t t;
    double start = now_ms(CLOCK_MONOTONIC), alone, both;

    for (int i = 0; i < 100; i++)
        spin(20000);
    alone = now_ms(CLOCK_MONOTONIC) - start;
    if (pthread_create(&t, NULL, take_turns, (void *)1) != 0)
        return 1;
    take_turns(NULL);
    pthread_join(t, NULL);
    both = now_ms(CLOCK_MONOTONIC) - start - alone;
    printf("alone %.3f both %.3f\n", alone, both);
    return 0;
}

/* In each phase another thread has the most to do, and all wait for it. */
static void *uneven(void *arg)
{
    static double taken;
    uintptr_t me = (uintptr_t)arg;
    double start;

    pthread_barrier_wait(&barrier);
    start = now_ms(CLOCK_MONOTONIC);
    for (uintptr_t i = 0; i < 2 * THREADS; i++) {
        spin(i % THREADS == me ? 20000 : 1000);
        pthread_barrier_wait(&barrier);
    }
    taken = now_ms(CLOCK_MONOTONIC) - start;
    return &taken;
}

static int barriers(void)
{
    pthread_t t[THREADS];
    double start, one;

    start = now_ms(CLOCK_MONOTONIC);
    for (int i = 0; i < 2 * THREADS; i++)
        spin(20000);
    one = now_ms(CLOCK_MONOTONIC) - start;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (uintptr_t i = 1; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, uneven, (void *)i) != 0)
            return 1;
    printf("one after another %.4f barriers %.4f\n", one, *(double *)uneven(NULL));
    for (int i = 1; i < THREADS; i++)
        pthread_join(t[i], NULL);
    return 0;
}

/* The same with processes, whose barrier is in memory that they share. */
static int processes(void)
{
    pthread_barrier_t *b =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    double start, one;
    int me = 0;

    start = now_ms(CLOCK_MONOTONIC);
    for (int i = 0; i < 16; i++)
        spin(20000);
    one = now_ms(CLOCK_MONOTONIC) - start;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (b == MAP_FAILED || pthread_barrier_init(b, &shared, 4) != 0)
        return 1;
    for (int i = 1; i < 4 && me == 0; i++)
        me = fork() == 0 ? i : 0;
    pthread_barrier_wait(b);
    start = now_ms(CLOCK_MONOTONIC);
    for (int i = 0; i < 16; i++) {
        spin(i % 4 == me ? 20000 : 1000);
        pthread_barrier_wait(b);
    }
    if (me != 0)
        _exit(0);
    printf("one after another %.4f barriers %.4f\n", one, now_ms(CLOCK_MONOTONIC) - start);
    while (wait(NULL) > 0)
        ;
    return 0;
}

static int forks(void)
{
    char word[32] = "";
    int to[2], from[2], status, kinds = 0;
    pid_t p;

    if (pipe(to) || pipe(from) || (p = fork()) < 0)
        return 1;
    if (p == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        execl("/proc/self/exe", "renamed", "echo", "with, comma", (char *)NULL);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    if (write(to[1], "ping", 4) != 4)
        return 1;
    close(to[1]);
    for (ssize_t n = 0, r; (r = read(from[0], word + n, sizeof(word) - 1 - (size_t)n)) > 0;)
        n += r;
    waitpid(p, &status, 0);
    printf("child said '%s', status %d\n", word, WEXITSTATUS(status));
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            if (i == 3)
                abort();
            _exit(i);
        }
        if (wait(&status) > 0)
            kinds += WIFSIGNALED(status) ? 100 : WEXITSTATUS(status);
    }
    printf("children %d\n", kinds);
    fflush(stdout);
    status = system("exit 7");
    printf("system %d, %s\n", WEXITSTATUS(status),
           execl("/nonexistent", "x", (char *)NULL) < 0 && errno == ENOENT ? "ENOENT" : "?");
    return 0;
}

static atomic_int done;

static void *busy(void *asleep)
{
    while (!atomic_load(&done)) {
        spin(100000);
        if (asleep)
            usleep(100);
    }
    return NULL;
}

static void *tell(void *arg)
{
    return arg;
}

/* Forks while other threads compute, sleep, or are about to begin; each child makes a thread. */
static int forks_beside(void)
{
    pthread_t t[4], late, one;
    void *told = NULL;
    int status, sum = 0;

    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, busy, i & 1 ? &turn : NULL) != 0)
            return 1;
    for (int i = 1; i <= 8; i++) {
        if (pthread_create(&late, NULL, tell, &turn) != 0)
            return 1;
        if (fork() == 0) {
            if (pthread_create(&one, NULL, tell, &turn) == 0)
                pthread_join(one, &told);
            _exit(told == &turn ? i : 0);
        }
        if (wait(&status) > 0 && WIFEXITED(status))
            sum += WEXITSTATUS(status);
        pthread_join(late, NULL);
    }
    atomic_store(&done, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    printf("children %d\n", sum);
    return 0;
}

static int echo(int argc, char **argv)
{
    char word[16] = "";
    if (read(0, word, sizeof(word) - 1) < 0)
        return 1;
    printf("%s %d %s %s", argv[0], argc, argv[2], word);
    return 5;
}

static sigjmp_buf jump;
static volatile sig_atomic_t caught;

static void on_signal(int s)
{
    caught += s;
    if (s == SIGSEGV)
        siglongjmp(jump, 1);
}

static int signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    volatile int ticks = 0;

    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGALRM, &a, NULL);
    sigaction(SIGSEGV, &a, NULL);
    raise(SIGUSR1);
    if (sigsetjmp(jump, 1) == 0)
        *(volatile int *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
    printf("caught %d\n", (int)caught);
    caught = 0;
    setitimer(ITIMER_REAL, &every, NULL);
    while (caught < 3 * SIGALRM) {
        spin(1000);
        ticks++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("ticked %d\n", ticks > 0);
    return 0;
}

static double elapsed(double start)
{
    return now_ms(CLOCK_MONOTONIC) - start;
}

static int sleeps(void)
{
    struct timespec d = {0, 20000000}, deadline;
    struct timeval tv = {0, 20000};
    pthread_condattr_t attr;
    double start = now_ms(CLOCK_MONOTONIC), wall = now_ms(CLOCK_REALTIME), cpu;

    nanosleep(&d, NULL);
    printf("nanosleep %.2f\n", elapsed(start));
    start = now_ms(CLOCK_MONOTONIC);
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += 20000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        deadline.tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
    printf("deadline %.2f\n", elapsed(start));
    start = now_ms(CLOCK_MONOTONIC);
    poll(NULL, 0, 20);
    printf("poll %.2f\n", elapsed(start));
    start = now_ms(CLOCK_MONOTONIC);
    select(0, NULL, NULL, NULL, &tv);
    printf("select %.2f\n", elapsed(start));
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cond, &attr);
    start = now_ms(CLOCK_MONOTONIC);
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += 20000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        deadline.tv_sec++;
    }
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&cond, &mutex, &deadline) == 0)
        ;
    pthread_mutex_unlock(&mutex);
    printf("condition %.2f\n", elapsed(start));
    cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    printf("all %.2f cpu %.2f\n", now_ms(CLOCK_REALTIME) - wall, cpu);
    return 0;
}

static int cpus(void)
{
    cpu_set_t s, two;
    int n = 0, in;
    char line[256];
    unsigned cpu;
    FILE *f = fopen("/proc/cpuinfo", "r");

    while (f && fgets(line, sizeof(line), f))
        n += strncmp(line, "processor", 9) == 0;
    sched_getaffinity(0, sizeof(s), &s);
    printf("affinity %d online %ld configured %ld cpuinfo %d\n", CPU_COUNT(&s),
           sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF), n);
    CPU_ZERO(&two);
    CPU_SET(2, &two);
    CPU_SET(5, &two);
    in = sched_setaffinity(0, sizeof(two), &two);
    sched_getaffinity(0, sizeof(s), &s);
    printf("set %d now %d equal %d\n", in, CPU_COUNT(&s), CPU_EQUAL(&s, &two));
    spin(400000);
    printf("runs there %d\n", getcpu(&cpu, NULL) == 0 && (cpu == 2 || cpu == 5));
    CPU_ZERO(&two);
    CPU_SET(50, &two);
    in = sched_setaffinity(0, sizeof(two), &two);
    printf("beyond %d %s\n", in, errno == EINVAL ? "EINVAL" : "?");
    return 0;
}

static int tiers(void)
{
    char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int64_t before, after;

    if (!pmemu_set_tier || p == MAP_FAILED) {
        puts("no emulated machine");
        return 1;
    }
    before = pmemu_event(PMEMU_LLC_RD_PM);
    printf("set %d", pmemu_set_tier(p, 65536, 1));
    printf(" tier %d", pmemu_tier_of(p));
    memset(p, 1, 65536);
    after = pmemu_event(PMEMU_LLC_RD_PM);
    munmap(p, 65536);
    printf(" lines %lld unmapped %d time %d\n", (long long)(after - before), pmemu_tier_of(p),
           pmemu_vtime_ns() > 0);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } parts[] = {{"threads", threads},   {"turns", turns},
                 {"barriers", barriers}, {"processes", processes},
                 {"forks", forks},       {"signals", signals},
                 {"sleeps", sleeps},     {"cpus", cpus},
                 {"tiers", tiers},       {"forks_beside", forks_beside}};

    if (argc > 2 && strcmp(argv[1], "echo") == 0)
        return echo(argc, argv);
    if (argc == 2 && strcmp(argv[1], "killed") == 0)
        return raise(SIGTERM);
    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run();
    return 2;
}
