/* SPDX-License-Identifier: BSD-2-Clause
 * Little memory to be written (RLIMIT_DATA), from the start or since a moment ago: half of what the
 * limit leaves can be had at least, and when nothing is left the program still forks, with its heap
 * whole in both processes. A limit that is lowered below what is there (RLIMIT_AS as well, by any
 * of the calls for it) shares no memory with a child: what it writes its parent does not see. Where
 * another process has lowered it there may be no child. */
#include "victim.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#define MIB   ((size_t)1 << 20)
#define BLOCK ((size_t)500000)
#define MOST  2000

static char *block[MOST];

static void limit(size_t bytes)
{
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_DATA, &r) == 0);
    r.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_DATA, &r) == 0);
}

/* How many blocks there are before malloc says NULL. */
static int exhaust(void)
{
    int n = 0;
    errno = 0;
    while (n < MOST && (block[n] = malloc(BLOCK)) != NULL) {
        memset(block[n], n, BLOCK);
        n++;
    }
    CHECK(n < MOST && errno == ENOMEM);
    return n;
}

static int whole(int n)
{
    for (int i = 0; i < n; i++)
        if (block[i][0] != (char)i || block[i][BLOCK - 1] != (char)i)
            return 0;
    return 1;
}

static void fork_and_free(int n)
{
    for (int i = 0; i < 3; i++) {
        pid_t p = fork();
        if (p == 0)
            _exit(whole(n) ? 5 : 6);
        CHECK(p > 0 && reap(p) == 5);
    }
    CHECK(whole(n));
    for (int i = 0; i < n; i++)
        free(block[i]);
    for (size_t i = 0; i < 1000; i++) { /* and life goes on */
        char *q = malloc(i * 50 + 1);
        CHECK(q);
        q[i * 50] = 1;
        free(q);
    }
}

/* Not by fork, before which what there is becomes private. */
static void lower_from_outside(int resource)
{
    char of[32], to[32];
    (void)snprintf(of, sizeof(of), "%d", getpid());
    (void)snprintf(to, sizeof(to), "%s=%zu:", resource == RLIMIT_AS ? "--as" : "--data", MIB);
    pid_t p = vfork();
    if (p == 0) {
        execle("/usr/bin/prlimit", "prlimit", "--pid", of, to, (char *)NULL, (char *[]){NULL});
        _exit(127);
    }
    CHECK(p > 0 && reap(p) == 0);
}

/* The calls that set a limit: l, p by the libc; L, P by their numbers; o: of another process; O: of
 * this one, by another. */
static void lower(int resource, char by)
{
    struct rlimit to = {MIB, RLIM_INFINITY};
    if (by == 'O') {
        lower_from_outside(resource);
        return;
    }
    pid_t p = by == 'o' ? fork() : 0;
    CHECK(p >= 0);
    if (by == 'o' && p == 0) {
        pause();
        _exit(0);
    }
    int r = by == 'l'   ? setrlimit((__rlimit_resource_t)resource, &to)
            : by == 'p' ? prlimit(0, (enum __rlimit_resource)resource, &to, NULL)
            : by == 'L' ? (int)syscall(SYS_setrlimit, resource, &to)
                        : (int)syscall(SYS_prlimit64, p, resource, &to, NULL);
    CHECK(r == 0);
    if (by == 'o')
        CHECK(kill(p, SIGKILL) == 0 && reap(p) == 1000 + SIGKILL);
}

static void lowered(int resource, char by)
{
    enum { N = 60, SMALL = 2000 };
    char *small[SMALL];
    for (int i = 0; i < N; i++)
        memset(block[i] = malloc(BLOCK), i, BLOCK);
    for (int i = 0; i < SMALL; i++)
        memset(small[i] = malloc(700), i, 700);
    for (int i = 0; i < N; i += 3) { /* holes as well */
        free(block[i]);
        block[i] = NULL;
    }
    lower(resource, by);
    for (int round = 0; round < 3; round++) {
        pid_t p = fork();
        CHECK(p >= 0 || (by == 'O' && errno == ENOMEM));
        for (int i = 0; p == 0 && i < N; i++)
            if (block[i])
                memset(block[i], 99, BLOCK);
        for (int i = 0; p == 0 && i < SMALL; i++)
            memset(small[i], 99, 700);
        if (p == 0)
            _exit(7);
        CHECK(p < 0 || reap(p) == 7);
        for (int i = 0; i < SMALL; i++)
            CHECK(small[i][0] == (char)i && small[i][699] == (char)i);
        for (int i = 0; i < N; i++)
            CHECK(!block[i] || (block[i][0] == (char)i && block[i][BLOCK - 1] == (char)i));
        for (int i = round; i < N; i += 7) { /* free memory is used again, the rest freed */
            free(block[i]);
            block[i] = NULL;
            free(malloc(1000));
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        lowered(*argv[2] == 'a' ? RLIMIT_AS : RLIMIT_DATA, *argv[3]);
        puts("ok");
        return 0;
    }
    size_t mib = argc > 1 ? (size_t)atol(argv[1]) : 0;
    if (argc == 2) { /* from the start */
        limit(mib * MIB);
        execl("/proc/self/exe", argv[0], argv[1], "limited", (char *)NULL);
        return 98;
    }
    if (mib) {
        int n = exhaust();
        if ((size_t)n * BLOCK < mib * MIB / 2)
            printf("%d blocks of %zu in %zu MiB\n", n, BLOCK, mib);
        fork_and_free(n);
    } else { /* less than what is there: nothing new at all */
        char *p = malloc(40 * MIB);
        memset(p, 1, 40 * MIB);
        nap_us(700000); /* the library has begun to place */
        limit(MIB);
        free(p);
        int n = exhaust();
        fork_and_free(n);
    }
    puts("ok");
    return 0;
}
