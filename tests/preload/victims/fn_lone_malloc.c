/* SPDX-License-Identifier: BSD-2-Clause
 * A program whose own allocator is not for threads, as it has none, and frees nothing before main
 * has readied it (GCL, and with it maxima and acl2, do so): nobody else may call it. */
#include "victim.h"

#include <sys/syscall.h>

#define ARENA ((size_t)64 << 20)

static char arena[ARENA] __attribute__((aligned(4096)));
static size_t used;
static int readied;

static void mine(const char *what)
{
    if (syscall(SYS_gettid) == getpid())
        return;
    (void)!write(1, what, strlen(what));
    _exit(98);
}

void *malloc(size_t n)
{
    mine("malloc in another thread\n");
    size_t at = (used + 31) & ~(size_t)15;
    if (n > ARENA - at)
        return NULL;
    *(size_t *)(arena + at - 8) = n;
    used = at + n;
    return arena + at;
}

void free(void *p)
{
    mine("free in another thread\n");
    if (!p || readied)
        return;
    (void)!write(1, "free before main\n", 17);
    _exit(98);
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size); /* fresh, so zero */
}

void *realloc(void *p, size_t n)
{
    void *q = malloc(n);
    if (p && q) {
        size_t old = ((size_t *)p)[-1];
        memcpy(q, p, old < n ? old : n);
        free(p);
    }
    return q;
}

int main(void)
{
    readied = 1;
    for (int i = 0; i < 30; i++) { /* a process that lives and grows is looked at */
        char *p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        fill(p, 8 << 20, i);
        nap_us(50000);
        CHECK(holds(p, 8 << 20, i) && (i % 2 || munmap(p, 8 << 20) == 0));
        free(malloc(100));
    }
    pid_t pid = fork();
    if (pid == 0) {
        free(malloc(1000));
        nap_us(300000);
        _exit(5);
    }
    CHECK(reap(pid) == 5);
    (void)!write(1, "ok\n", 3);
    return 0;
}
