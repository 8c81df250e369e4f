/* SPDX-License-Identifier: BSD-2-Clause
 * Running a part of a test in a child, whose limits, files and death are its own. */
#ifndef HYBRID_TESTS_CHILD_H
#define HYBRID_TESTS_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#else
#define TEST_SANITIZED 0
#endif

/* valgrind has limits of its own on mappings, descriptors and signals. */
static inline int under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

/* Inside the child: a failed check names its line through the exit status. */
#define child_check(x)                                                                             \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            dprintf(2, "%s:%d: child: %s is false (errno %d)\n", __FILE__, __LINE__, #x, errno);   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* fn(arg) in a child that has 600 s; its wait status (0: all checks held). */
static inline int in_child(void (*fn)(void *arg), void *arg)
{
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(600);
        fn(arg);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return status;
}

/* What fn() says in a child: 0 when it did what it should. */
static inline int in_fork(int (*fn)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(fn());
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A fresh directory; remove_dir also removes the plain files in it. */
static inline void make_dir(char *buf, size_t cap)
{
    const char *base = getenv("TMPDIR");
    snprintf(buf, cap, "%s/hybrid-test-XXXXXX", base != NULL ? base : P_tmpdir);
    if (mkdtemp(buf) == NULL) {
        perror(buf);
        exit(1);
    }
}

static inline void remove_dir(const char *dir)
{
    char cmd[600];
    snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
    if (system(cmd) != 0)
        perror(cmd);
}

#endif
