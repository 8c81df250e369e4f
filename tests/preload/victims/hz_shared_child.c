/* SPDX-License-Identifier: BSD-2-Clause
 * Children that have their parent's memory (clone with CLONE_VM and CLONE_VFORK, as of sandboxes and
 * of spawning libraries) allocate in it, so much that a library may begin to place: the child is one
 * thread, ends with the status that it returns, and its parent goes on with what it has left. */
#include "victim.h"

#include <sched.h>

#define MIB ((size_t)1 << 20)

static char *kept[64];
static size_t n_kept;
static int threads;

static int count_threads(void)
{
    char text[4096], *at;
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    at = strstr(text, "Threads:");
    return at ? atoi(at + 8) : -1;
}

static int child(void *arg)
{
    for (size_t i = 0; i < (size_t)(uintptr_t)arg; i++)
        memset(kept[n_kept++] = malloc(MIB), 5, MIB);
    for (size_t i = 0; i < 2000; i++)
        free(malloc(i * 40));
    threads = count_threads();
    return 5;
}

static void beget(size_t mib)
{
    char *stack = malloc(256 * 1024);
    pid_t p = clone(child, stack + 256 * 1024, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)mib);
    CHECK(p > 0 && reap(p) == 5 && threads == 1);
    free(stack);
}

int main(void)
{
    for (int i = 0; i < 10; i++)
        beget(i ? 1 : 40);
    nap_us(100000);
    for (size_t i = 0; i < n_kept; i++) {
        CHECK(kept[i][0] == 5 && kept[i][MIB - 1] == 5);
        free(kept[i]);
    }
    for (size_t i = 0; i < 40; i++)
        memset(kept[i] = malloc(MIB), 6, MIB);
    nap_us(100000);
    beget(1); /* beside a thread of the library's, if there is one */
    puts("ok");
    return 0;
}
