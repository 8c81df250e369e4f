/* SPDX-License-Identifier: BSD-2-Clause
 * Other programs started by a confined one inherit its CPUs and its share of the cache from the
 * kernel: they are given what this process had at first. Without a cap each is a call passed on. */
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "llc/share.h"
#include "sys/dl.h"
#include "sys/env.h"
#include "threadcap.h"

/* Back only if there was an error: else nobody is here any more. A child of vfork has a
 * mask of its own, so the parent's stays. One name is looked up, not the family: each child of a
 * shell does this, and what it finds dies with it. */
#define EXEC(call, ...)                                                                            \
    do {                                                                                           \
        DL_NEXT(call);                                                                             \
        if (HY_UNLIKELY(!fn)) { /* execveat, before glibc 2.34 */                                  \
            errno = ENOSYS;                                                                        \
            return -1;                                                                             \
        }                                                                                          \
        bool opened_ = threadcap_open(), cache_ = llc_open();                                      \
        int r_ = fn(__VA_ARGS__);                                                                  \
        llc_close(cache_);                                                                         \
        threadcap_close(opened_);                                                                  \
        return r_;                                                                                 \
    } while (0)

HY_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    EXEC(execve, path, argv, envp);
}

HY_EXPORT int execv(const char *path, char *const argv[])
{
    EXEC(execve, path, argv, env_all());
}

HY_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    EXEC(execvpe, file, argv, envp);
}

HY_EXPORT int execvp(const char *file, char *const argv[])
{
    EXEC(execvpe, file, argv, env_all());
}

HY_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    EXEC(fexecve, fd, argv, envp);
}

HY_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    EXEC(execveat, fd, path, argv, envp, flags);
}

/* The arguments of the list forms as an array on the stack, as large as they are. */
static size_t count_arguments(va_list ap)
{
    size_t n = 1;
    while (va_arg(ap, char *))
        n++;
    return n;
}

#define LIST_FORM(name, call, environment)                                                         \
    HY_EXPORT int name(const char *path, const char *arg, ...)                                     \
    {                                                                                              \
        va_list ap;                                                                                \
        size_t n;                                                                                  \
        const char *volatile first = arg; /* the header promises what callers may break */         \
        if (!first) {                                                                              \
            char *none[] = {NULL};                                                                 \
            EXEC(call, path, none, env_all());                                                     \
        }                                                                                          \
        va_start(ap, arg);                                                                         \
        n = count_arguments(ap);                                                                   \
        va_end(ap);                                                                                \
        char **argv = __builtin_alloca((n + 1) * sizeof(char *));                                  \
        argv[0] = (char *)arg;                                                                     \
        va_start(ap, arg);                                                                         \
        for (size_t i = 1; i <= n; i++)                                                            \
            argv[i] = va_arg(ap, char *);                                                          \
        char *const *envp = environment;                                                           \
        va_end(ap);                                                                                \
        EXEC(call, path, argv, envp);                                                              \
    }

LIST_FORM(execl, execve, env_all())
LIST_FORM(execlp, execvpe, env_all())
LIST_FORM(execle, execve, va_arg(ap, char *const *))

HY_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    EXEC(posix_spawn, pid, path, actions, attr, argv, envp);
}

HY_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    EXEC(posix_spawnp, pid, file, actions, attr, argv, envp);
}

HY_EXPORT int system(const char *command)
{
    EXEC(system, command);
}

HY_EXPORT FILE *popen(const char *command, const char *type)
{
    DL_NEXT(popen);
    bool opened = threadcap_open(), cache = llc_open();
    FILE *f = fn(command, type);
    llc_close(cache);
    threadcap_close(opened);
    return f;
}
