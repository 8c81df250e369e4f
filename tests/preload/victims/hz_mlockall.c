/* SPDX-License-Identifier: BSD-2-Clause
 * mlockall: every new mapping is in memory at once, ours as well. The heap works, parent and
 * children keep theirs, and 28 MiB of blocks do not become 128 (they were 212). What lies ready for
 * the heap is not locked, and becomes so when it is used. Nor is address space reserved and locked.
 */
#include <stdbool.h>

#include "victim.h"

#define MIB      ((size_t)1 << 20)
#define N        (MIB / 4)
#define BLOCKS   30
#define MOST     (128 * MIB)
#define AT_FIRST (64 * MIB)
#define SMALL    (7 * MIB) /* the plain program has 2.4; tables that it does not use were 4 more */

static char *block[BLOCKS];

static int child(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(holds(block[i], N, (uint64_t)i));
        memset(block[i], 1, N);
        free(block[i]);
    }
    char *z = calloc(1, 3 * MIB);
    return z && all_zero(z, 3 * MIB) ? 4 : 5;
}

/* Of VmLck, which counts what is reserved as well. */
static size_t locked(void)
{
    static char buf[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, buf, sizeof buf - 1) > 0);
    close(fd);
    char *p = strstr(buf, "VmLck:");
    CHECK(p);
    return strtoul(p + 6, NULL, 10) * 1024;
}

/* A small program: its threads of ours reserve nothing large. */
static int reserved(void)
{
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    nap_us(500000);
    if (locked() > SMALL)
        printf("%zu KiB are locked\n", locked() / 1024);
    puts("ok");
    return 0;
}

static void locked_at_once(void)
{
    static unsigned char there[24 * MIB / 4096];
    if (statm(2) > AT_FIRST)
        printf("%zu MiB are resident at first\n", statm(2) / MIB);
    char *p = aligned_alloc(4096, 24 * MIB);
    CHECK(p && mincore(p, 24 * MIB, there) == 0);
    for (size_t i = 0; i < sizeof there; i++)
        CHECK(there[i] & 1);
    free(p);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "reserved") == 0)
        return reserved();
    bool both = argc > 1 && strcmp(argv[1], "both") == 0;
    CHECK(mlockall(both ? MCL_CURRENT | MCL_FUTURE : MCL_FUTURE) == 0);
    if (both)
        locked_at_once();
    for (int i = 0; i < 80; i++)
        memset(malloc(N), 1, N);
    nap_us(500000); /* the library places */
    for (int i = 0; i < BLOCKS; i++)
        fill(block[i] = malloc(N), N, (uint64_t)i);
    for (int round = 0; round < 2; round++) {
        pid_t p = fork();
        if (p == 0)
            _exit(child());
        CHECK(reap(p) == 4);
        for (int i = 0; i < BLOCKS; i++)
            CHECK(holds(block[i], N, (uint64_t)i));
        nap_us(200000);
    }
    if (statm(2) > MOST)
        printf("%zu MiB are resident\n", statm(2) / MIB);
    puts("ok");
    return 0;
}
