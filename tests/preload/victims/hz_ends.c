/* SPDX-License-Identifier: BSD-2-Clause
 * Ways to begin and to end: exit before main, in a handler of exit, of a signal, in a thread, in a
 * destructor; forks and execs in each of them; the library opened and closed by a program that runs
 * without it. What is said goes through stdio, so that what a copy has not said yet is seen twice.
 */
#include "victim.h"

#include <dlfcn.h>
#include <sys/syscall.h>

static const char *mode = "";
static char **arguments;

static int is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void churn(void)
{
    for (size_t n = 1; n < 3000000; n = n * 3 + 1) {
        char *p = malloc(n);
        CHECK(p);
        memset(p, 7, n);
        free(p);
    }
}

/* A child that ends by `end`: 0 exit, 1 _exit, 2 exec of a program that does nothing, 3 the same
 * after vfork. */
static void child(int end)
{
    static char *const nothing[] = {"true", NULL};
    fflush(stdout);
    pid_t pid = end == 3 ? vfork() : fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (end == 3 || end == 2) {
            execv("/bin/true", nothing);
            _exit(98);
        }
        churn();
        if (end == 0)
            exit(0);
        _exit(0);
    }
    CHECK(reap(pid) == 0);
}

static void children(void)
{
    for (int end = 1; end < 4; end++)
        child(end);
    churn();
}

static void first_handler(void)
{
    printf("first registered\n");
    children();
}

static void last_handler(void)
{
    printf("last registered\n");
    if (is("handler"))
        exit(21); /* goes on with the handlers that are left */
    children();
}

static void on_alarm(int sig)
{
    (void)sig;
    if (is("signal"))
        exit(22);
    _exit(22);
}

static void *leave(void *unused)
{
    (void)unused;
    churn();
    child(1);
    exit(23);
}

static void *outlive(void *unused)
{
    (void)unused;
    nap_us(20000);
    children();
    printf("outlived\n");
    exit(24);
}

__attribute__((constructor)) static void before_main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "";
    arguments = argv;
    if (is("early") || is("early-fork"))
        atexit(first_handler);
    if (is("early-fork"))
        children();
    if (is("early"))
        exit(25);
    if (is("early_exit"))
        _exit(26);
    if (is("early-exec")) {
        argv[1] = (char *)"plain";
        execv("/proc/self/exe", argv);
        _exit(97);
    }
}

__attribute__((destructor)) static void after_main(void)
{
    if (is("destructor"))
        children();
    if (is("destructor-exit"))
        _exit(27);
}

static void quick(void)
{
    dprintf(1, "quick\n");
    child(1);
}

static void opened(const char *path)
{
    for (int i = 0; path && i < 3; i++) {
        void *h = dlopen(path, i == 1 ? RTLD_NOW | RTLD_GLOBAL : RTLD_LAZY);
        CHECK(h);
        children();
        CHECK(dlclose(h) == 0);
        pthread_t t;
        CHECK(pthread_create(&t, NULL, (void *(*)(void *))strdup, (void *)"a thread") == 0);
        void *p;
        CHECK(pthread_join(t, &p) == 0);
        free(p);
        children();
    }
}

int main(int argc, char **argv)
{
    pthread_t t;
    atexit(first_handler);
    atexit(last_handler);
    at_quick_exit(quick);
    signal(SIGALRM, on_alarm);
    churn();
    if (is("opened"))
        opened(argc > 2 ? argv[2] : NULL);
    if (is("quick"))
        quick_exit(28);
    if (is("abrupt"))
        syscall(SYS_exit_group, 29);
    if (is("thread") && pthread_create(&t, NULL, leave, NULL) == 0)
        pthread_join(t, NULL);
    if (is("outlive") && pthread_create(&t, NULL, outlive, NULL) == 0)
        pthread_exit(NULL);
    if (is("exec")) {
        arguments[1] = (char *)"plain";
        execv("/proc/self/exe", arguments);
    }
    if (is("signal") || is("signal_exit")) {
        ualarm(2000, 0);
        for (;;)
            churn();
    }
    if (is("child"))
        child(0); /* runs the handlers as well */
    printf("main ends\n");
    return 30;
}
