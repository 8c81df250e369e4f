/* SPDX-License-Identifier: BSD-2-Clause
 * What tracking costs here, in CPU time of one thread (docs/pages.md has figures): random
 * stores on huge pages, and on the same after tracking split them; a look at and the arming
 * of clean and written memory; the first store to an armed page. Not a test. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "sys/pages/track.h"

enum { BLOCKS = 128 }; /* of 2 MiB */
#define BLOCK  (512 * HY_PAGE)
#define BYTES  (BLOCKS * BLOCK)
#define STORES 20000000u

static double cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static double stores(char *at)
{
    uint64_t random = 1;
    double start = cpu_ns();
    for (unsigned i = 0; i < STORES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        *(volatile uint64_t *)(at + (random >> 20) % (BYTES / 8) * 8) = i;
    }
    return (cpu_ns() - start) / STORES;
}

static double look(struct os_track *t, char *at, bool rearm)
{
    static struct os_page_run runs[512];
    double start = cpu_ns();
    for (unsigned b = 0; b < BLOCKS; b++)
        if (os_track_look(t, at + b * BLOCK, BLOCK, rearm, runs, 512) < 0)
            exit(1);
    return (cpu_ns() - start) / BLOCKS / 1000;
}

static double touch(char *at)
{
    double start = cpu_ns();
    for (size_t i = 0; i < BYTES; i += HY_PAGE)
        *(volatile char *)(at + i) = 1;
    return (cpu_ns() - start) / (BYTES / HY_PAGE) / 1000;
}

int main(void)
{
    struct os_track t;
    char *map =
        mmap(NULL, BYTES + BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)hy_align_up((uintptr_t)map, BLOCK);
    if (map == MAP_FAILED || os_track_open(OS_TRACK_SCAN, &t) != 0) {
        printf("this kernel has no PAGEMAP_SCAN\n");
        return 77;
    }
    madvise(at, BYTES, MADV_HUGEPAGE);
    memset(at, 1, BYTES);
    stores(at);
    printf("random stores to %u MiB, huge pages: %.1f ns\n", BLOCKS * 2, stores(at));
    if (os_track_add(&t, at, BYTES) != 0)
        return 1;
    printf("arm huge pages: %.1f us for 2 MiB\n", look(&t, at, true));
    printf("the first store to each page: %.2f us a page\n", touch(at));
    printf("random stores, huge pages split: %.1f ns\n", stores(at));
    printf("arm small pages: %.1f us for 2 MiB\n", look(&t, at, true));
    printf("look, none written: %.1f us for 2 MiB\n", look(&t, at, true));
    printf("the first store to each page: %.2f us a page\n", touch(at));
    printf("look, all written: %.1f us for 2 MiB\n", look(&t, at, false));
    os_track_close(&t);
    return 0;
}
