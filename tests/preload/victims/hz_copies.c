/* SPDX-License-Identifier: BSD-2-Clause
 * Children that are copies, made by calls that run no fork handlers: each may allocate at once, in
 * a time that is no longer than its parent's, and what it writes is not seen by its parent. */
#include "victim.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>

#define LARGE  24
#define SMALL  2000
#define N      ((size_t)1 << 20)
#define STACK  ((size_t)1 << 18)
#define ROUNDS 3

static char *large[LARGE], *small[SMALL];

static int child(void *arg)
{
    (void)arg;
    for (int i = 0; i < LARGE; i++)
        memset(large[i], 0xee, N);
    for (int i = 0; i < SMALL; i++) {
        memset(small[i], 0xcc, 100);
        free(small[i]);
    }
    for (size_t i = 0; i < SMALL; i++) {
        char *p = malloc(i * 50 + 1);
        memset(p, 1, i * 50 + 1);
        if (i % 2)
            free(p);
    }
    for (int i = 0; i < LARGE; i++)
        free(large[i]);
    _exit(7);
}

static pid_t by_Fork(void)
{
    pid_t p = _Fork();
    return p ? p : child(NULL);
}

#ifdef SYS_fork
static pid_t by_number(void)
{
    pid_t p = (pid_t)syscall(SYS_fork);
    return p ? p : child(NULL);
}
#endif

static pid_t by_raw_clone(void)
{
    pid_t p = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    return p ? p : child(NULL);
}

static pid_t by_clone3(void)
{
    struct clone_args a = {.exit_signal = SIGCHLD};
    pid_t p = (pid_t)syscall(SYS_clone3, &a, sizeof a);
    if (p == -1 && errno == ENOSYS)
        return by_raw_clone();
    return p ? p : child(NULL);
}

static pid_t by_clone(void)
{
    static char *stack;
    stack = stack ? stack : aligned_alloc(4096, STACK);
    return clone(child, stack + STACK, SIGCHLD, NULL);
}

/* What the libc makes of it is not changed: the child of this one has the parent's memory. */
static volatile int seen;
static int note(void *arg)
{
    free(malloc(1000));
    seen = *(int *)arg;
    return 3;
}

static void shared(void)
{
    int five = 5, tid = 0;
    char *stack = aligned_alloc(4096, STACK);
    pid_t p = clone(note, stack + STACK, CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD,
                    &five, &tid);
    CHECK(p > 0 && reap(p) == 3 && seen == 5 && tid == p);
    errno = 0;
    CHECK(clone(NULL, stack + STACK, SIGCHLD, NULL) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(syscall(SYS_clone3, NULL, 0) == -1 && (errno == EINVAL || errno == ENOSYS));
    free(stack);
}

int main(void)
{
    pid_t (*const way[])(void) = {by_Fork,
#ifdef SYS_fork
                                  by_number,
#endif
                                  by_raw_clone, by_clone3, by_clone};
    for (int i = 0; i < LARGE; i++)
        fill(large[i] = malloc(N), N, (uint64_t)i);
    for (int i = 0; i < SMALL; i++)
        fill(small[i] = malloc(100), 100, (uint64_t)i);
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned w = 0; w < sizeof way / sizeof *way; w++) {
            pid_t p = way[w]();
            CHECK(p > 0 && reap(p) == 7);
            for (int i = 0; i < LARGE; i++)
                CHECK(holds(large[i], N, (uint64_t)i));
            for (int i = 0; i < SMALL; i++)
                CHECK(holds(small[i], 100, (uint64_t)i));
            char *again = malloc(300000);
            fill(again, 300000, 4);
            CHECK(holds(again, 300000, 4));
            free(again);
        }
    shared();
    puts("ok");
    return 0;
}
