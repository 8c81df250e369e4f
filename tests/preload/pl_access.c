/* SPDX-License-Identifier: BSD-2-Clause
 * Uses memory of five call sites, each in its own measure, on a processor of the test's own
 * (pl_pmu), and tells how much: SITE BYTES LOADS STORES a line, missed lines each. Two threads,
 * until they have missed MILLIONS of loads. pl_access MILLIONS [wait|filter]   wait: begin when
 * they are sampled; filter: also, and from the middle on a seccomp filter kills who opens events */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../filter.h"

#define KIB     1024ul
#define THREADS 2
#define SMALL   4096 /* blocks */

void pmu_load(const void *address, unsigned long times) __attribute__((weak));
void pmu_store(const void *address, unsigned long times, int hit) __attribute__((weak));
int pmu_watches(void) __attribute__((weak));

enum { READ_MOST, READ, WRITTEN, MAPPED, SMALLS, SITES };
static const struct {
    const char *name;
    unsigned long bytes;
    unsigned loads, stores; /* percent of all */
} site[SITES] = {
    [READ_MOST] = {"read-most", 1024 * KIB, 55, 10},
    [READ] = {"read", 2048 * KIB, 25, 0},
    [WRITTEN] = {"written", 3072 * KIB, 0, 70},
    [MAPPED] = {"mapped", 4096 * KIB, 10, 20},
    [SMALLS] = {"small", 256, 10, 0},
};
static char *memory[SITES], *small[SMALL];
static unsigned long loads[SITES], stores[SITES], enough;
static volatile int over, patience_ms;

#define SITE(name, get)                                                                            \
    __attribute__((noinline)) static char *name(unsigned long n)                                   \
    {                                                                                              \
        char *p = get;                                                                             \
        __asm__ volatile("" : "+r"(p));                                                            \
        memset(p, 1, n);                                                                           \
        return p;                                                                                  \
    }
SITE(read_most, malloc(n))
SITE(read_some, malloc(n))
SITE(written, malloc(n))
SITE(small_block, malloc(n))
SITE(mapped, mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))

static int choose(unsigned percent, int stored)
{
    int i = 0;
    while (percent >= (stored ? site[i].stores : site[i].loads))
        percent -= stored ? site[i].stores : site[i].loads, i++;
    return i;
}

static void *use(void *seed)
{
    unsigned long x = 88172645463325252ul + (unsigned long)(size_t)seed;
    char stack[64];
    for (int ms = 0; ms < patience_ms && pmu_watches && !pmu_watches(); ms++)
        usleep(1000);
    while (!over) {
        for (int n = 0; n < 16; n++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            unsigned long times = x >> 20 & 8191;
            int i = choose((unsigned)(x >> 40) % 100, 0), k = choose((unsigned)(x >> 48) % 100, 1);
            const char *at = i == SMALLS ? small[x % SMALL] : memory[i] + x % site[i].bytes;
            if (pmu_load) {
                pmu_load(at, times);
                pmu_store(memory[k] + x % site[k].bytes, 16 * times, 0);
                pmu_store(stack, 24 * times, 1);
            }
            __atomic_add_fetch(&stores[k], 16 * times, __ATOMIC_RELAXED);
            if (__atomic_add_fetch(&loads[i], times, __ATOMIC_RELAXED) > enough && i == READ_MOST)
                over = 1;
        }
        usleep(500);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    unsigned long all = argc > 1 ? strtoul(argv[1], NULL, 10) * 1000000 : 0;
    int filter = argc > 2 && strcmp(argv[2], "filter") == 0;
    patience_ms = argc > 2 ? 30000 : 0;
    enough = all * site[READ_MOST].loads / 100 / (filter ? 2 : 1);
    memory[READ_MOST] = read_most(site[READ_MOST].bytes);
    memory[READ] = read_some(site[READ].bytes);
    memory[WRITTEN] = written(site[WRITTEN].bytes);
    memory[MAPPED] = mapped(site[MAPPED].bytes);
    for (int i = 0; i < SMALL; i++)
        small[i] = small_block(site[SMALLS].bytes);
    for (int part = 0; part < 1 + filter; part++) {
        over = 0;
        for (size_t t = 0; t < THREADS; t++)
            if (pthread_create(&thread[t], NULL, use, (void *)t) != 0)
                return 1;
        for (size_t t = 0; t < THREADS; t++)
            pthread_join(thread[t], NULL);
        if (part == 0 && filter) {
            if (!kill_on(SYS_perf_event_open, SYS_perf_event_open))
                return 77;
            patience_ms = 0;
            enough *= 2;
        }
    }
    for (int i = 0; i < SITES; i++)
        printf("%s %lu %lu %lu\n", site[i].name, site[i].bytes, loads[i], stores[i]);
    return 0;
}
