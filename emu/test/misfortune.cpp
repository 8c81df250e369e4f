// SPDX-License-Identifier: BSD-2-Clause
// Ends of all kinds, too many threads, and computing that nobody sees:
//   misfortune HOW [NUMBER]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

static volatile unsigned numbers[1024];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static void work()
{
    for (unsigned i = 0; i < 200000; i++)
        numbers[i % 1024] = numbers[i % 1024] + i;
}

static void *one(void *all)
{
    work();
    pthread_barrier_wait(static_cast<pthread_barrier_t *>(all));
    pthread_mutex_lock(&lock);
    sum++;
    pthread_mutex_unlock(&lock);
    return nullptr;
}

static int threads(int n)
{
    std::vector<pthread_t> t(n);
    pthread_barrier_t all;
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, 64 * 1024);
    pthread_barrier_init(&all, nullptr, n);
    for (auto &x : t)
        if (pthread_create(&x, &a, one, &all) != 0)
            return 1;
    for (auto &x : t)
        pthread_join(x, nullptr);
    printf("sum %d\n", sum);
    return 0;
}

// Not instrumented: a thread that computes without a call-out for half a second of CPU time.
__attribute__((no_sanitize("thread"), no_sanitize_coverage, noinline)) static void *hidden(void *)
{
    timespec t{};
    unsigned x = 1;
    while (t.tv_sec == 0 && t.tv_nsec < 500000000) {
        for (int i = 0; i < 100000; i++)
            x = x * 1664525 + 1013904223;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    }
    numbers[0] = x;
    return nullptr;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int status = argc > 2 ? atoi(argv[2]) : 0;
    char *again[] = {argv[0], const_cast<char *>("again"), nullptr};

    if (strcmp(how, "again") == 0) {
        puts("again");
        return 0;
    }
    if (strcmp(how, "threads") == 0)
        return threads(status);
    if (strcmp(how, "unseen") == 0) {
        pthread_t t;
        pthread_create(&t, nullptr, hidden, nullptr);
        for (int i = 0; i < 20; i++)
            work();
        return pthread_join(t, nullptr);
    }
    work();
    if (strcmp(how, "_exit") == 0)
        _exit(status);
    if (strcmp(how, "_Exit") == 0)
        _Exit(status);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(status);
    if (strcmp(how, "exit_group") == 0)
        syscall(SYS_exit_group, status);
    if (strcmp(how, "execv") == 0)
        execv("/proc/self/exe", again);
    if (strcmp(how, "execle") == 0)
        execle("/proc/self/exe", argv[0], "again", static_cast<char *>(nullptr), environ);
    if (strcmp(how, "vfork") == 0) {
        pid_t p = vfork();
        if (p == 0) {
            execv("/proc/self/exe", again);
            _exit(1);
        }
        waitpid(p, nullptr, 0);
    }
    if (strcmp(how, "exec_fails") == 0) {
        execv("/nonexistent/program", again);
        work();
        puts("still here");
    }
    return status;
}
