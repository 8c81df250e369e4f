/* SPDX-License-Identifier: BSD-2-Clause
 * execve. See exec.h. */
#include "qemu/exec.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program/start.h"
#include "qemu/command.h"
#include "qemu/guest.h"
#include "qemu/plugin_api.h"

#define MAX_STRINGS (1u << 20)

static char qemu_path[PATH_MAX], plugin_path[PATH_MAX], guest_library[PATH_MAX];
static char program_path[PATH_MAX];

void exec_options(int argc, char **argv)
{
    ssize_t n = readlink("/proc/self/exe", qemu_path, sizeof(qemu_path) - 1);
    Dl_info us;

    qemu_path[n > 0 ? n : 0] = '\0';
    if (!dladdr((void *)exec_options, &us) || !realpath(us.dli_fname, plugin_path))
        plugin_path[0] = '\0';
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "guest=", 6) == 0)
            snprintf(guest_library, sizeof(guest_library), "%s", argv[i] + 6);
}

void exec_loaded(void)
{
    const char *p = qemu_plugin_path_to_binary();
    if (!p || !realpath(p, program_path))
        program_path[0] = '\0';
}

/* As guests' addresses are ours (plugin.c insists), their lists can be used in place, once it is
 * sure that reading them does not end in a signal. -1: not a list. */
static long strings_of(uint64_t list)
{
    for (uint64_t i = 0; list && i < MAX_STRINGS; i++) {
        uint64_t s;
        char c;
        if (guest_read(list + i * sizeof(s), &s, sizeof(s)) < 0)
            return -1;
        if (s == 0)
            return (long)i;
        if (guest_read(s, &c, 1) < 0)
            return -1;
    }
    return list ? -1 : 0;
}

static bool own_program(const char *path)
{
    char own[40];
    snprintf(own, sizeof(own), "/proc/%d/exe", (int)getpid());
    return strcmp(path, "/proc/self/exe") == 0 || strcmp(path, "/proc/thread-self/exe") == 0 ||
           strcmp(path, own) == 0;
}

void exec_enter(uint64_t path_at, uint64_t argv, uint64_t envp)
{
    const char *path = (const char *)path_at; /* NOLINT: guests' addresses are ours */
    struct command_tools tools = {qemu_path, plugin_path, *guest_library ? guest_library : NULL};
    long na = strings_of(argv), ne = strings_of(envp);
    struct program program;
    struct command c;
    size_t bytes;
    void *room;
    char first;

    if (guest_read(path_at, &first, 1) < 0 || na < 0 || ne < 0 || !*qemu_path || !*plugin_path)
        return;
    if (own_program(path) && *program_path)
        path = program_path;
    bytes = ((size_t)na + (size_t)ne) * 64 + (1u << 20);
    room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return;
    /* Whatever is wrong with the program, the real call finds it, too, and says so. */
    if (command_make(path, (char **)argv, (char **)envp, &tools, room, bytes, &c, &program) >= 0) {
        bool left = emu_exec_begins();
        execve(c.path, c.argv, c.envp);
        if (left)
            emu_exec_failed();
    }
    munmap(room, bytes);
}
