/* SPDX-License-Identifier: BSD-2-Clause
 * mlockall: every new mapping is in memory at once, ours as well. The heap works, parent and
 * children keep theirs, and 28 MiB of blocks do not become 128 (they were 212). */
#include "victim.h"

#define MIB    ((size_t)1 << 20)
#define N      (MIB / 4)
#define BLOCKS 30
#define MOST   (128 * MIB)

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

int main(int argc, char **argv)
{
    CHECK(mlockall(argc > 1 && strcmp(argv[1], "both") == 0 ? MCL_CURRENT | MCL_FUTURE
                                                            : MCL_FUTURE) == 0);
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
