/* SPDX-License-Identifier: BSD-2-Clause
 * Little memory to be written (RLIMIT_DATA), from the start or since a moment ago: half of what the
 * limit leaves can be had at least, and when nothing is left the program still forks, with its heap
 * whole in both processes. */
#include "victim.h"

#include <sys/resource.h>

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

int main(int argc, char **argv)
{
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
