/* SPDX-License-Identifier: BSD-2-Clause
 * Ends of a process that no destructor sees: exec, _exit, quick_exit. A child of vfork
 * does the same in its parent's memory; the core tells it from the parent. quick_exit
 * has a handler of its own (start.c). */
#include <alloca.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/core.h"
#include "program/start.h"
#include "instrument/real.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXEC(name, types, args)                                                                    \
    EXPORT int name types                                                                          \
    {                                                                                              \
        REAL(int, name, TYPES types);                                                              \
        bool left = emu_exec_begins();                                                             \
        int r = f args;                                                                            \
        if (left)                                                                                  \
            emu_exec_failed();                                                                     \
        return r;                                                                                  \
    }
#define TYPES(...) __VA_ARGS__

EXEC(execve, (const char *path, char *const argv[], char *const env[]), (path, argv, env))
EXEC(execv, (const char *path, char *const argv[]), (path, argv))
EXEC(execvp, (const char *file, char *const argv[]), (file, argv))
EXEC(execvpe, (const char *file, char *const argv[], char *const env[]), (file, argv, env))
EXEC(fexecve, (int fd, char *const argv[], char *const env[]), (fd, argv, env))
EXEC(execveat, (int fd, const char *path, char *const argv[], char *const env[], int flags),
     (fd, path, argv, env, flags))

/* The arguments up to NULL in `argv`; `tail` reads what follows from `ap`. */
#define GATHER(argv, first, tail)                                                                  \
    va_list ap;                                                                                    \
    size_t n = 1;                                                                                  \
    va_start(ap, first);                                                                           \
    while (va_arg(ap, char *))                                                                     \
        n++;                                                                                       \
    va_end(ap);                                                                                    \
    argv = alloca((n + 1) * sizeof(char *));                                                       \
    argv[0] = (char *)(uintptr_t)first;                                                            \
    va_start(ap, first);                                                                           \
    for (size_t i = 1; i <= n; i++)                                                                \
        argv[i] = va_arg(ap, char *);                                                              \
    tail;                                                                                          \
    va_end(ap)

EXPORT int execl(const char *path, const char *first, ...)
{
    char **argv;
    GATHER(argv, first, (void)0);
    return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    char **argv;
    GATHER(argv, first, (void)0);
    return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    char **argv;
    char *const *env;
    GATHER(argv, first, env = va_arg(ap, char *const *));
    return execve(path, argv, env);
}

EXPORT void _exit(int status)
{
    REAL(void, _exit, int);
    emu_finish();
    f(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    _exit(status);
}
