/* SPDX-License-Identifier: BSD-2-Clause
 * exit() while threads take ever more memory: libraries behind the allocator are
 * torn down in the middle of it, and no block may be handed out twice for that.
 * Argument: number of exits. */
#include "victim.h"

enum { BLOCK = 200000, KEEP = 600 };

static int out = 1;

static void *grow(void *arg)
{
    uint64_t *kept[KEEP];
    uintptr_t me = (uintptr_t)arg + 1;
    for (uint64_t i = 0; i < KEEP; i++) {
        uint64_t *p = malloc(BLOCK);
        if (!p)
            break;
        kept[i] = p;
        p[0] = p[BLOCK / 8 - 1] = me << 32 | i;
        for (uint64_t k = i > 40 ? i - 40 : 0; k <= i; k++)
            if (kept[k][0] != (me << 32 | k) || kept[k][BLOCK / 8 - 1] != (me << 32 | k)) {
                CHECK(write(out, "a block has two owners\n", 23) == 23);
                _exit(1);
            }
    }
    pause();
    return NULL;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60, bad = 0;
    for (int round = 0; round < rounds; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            pthread_t t;
            for (uintptr_t i = 0; i < 3; i++)
                CHECK(pthread_create(&t, NULL, grow, (void *)i) == 0);
            nap_us(300 + round % 10 * 400);
            exit(round % 100);
        }
        int st = reap(pid);
        if (st != round % 100) {
            bad++;
            fprintf(stderr, "exit %d ended with %d\n", round, st);
        }
    }
    printf("bad ends: %d\n", bad);
    return bad != 0;
}
