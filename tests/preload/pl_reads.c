/* SPDX-License-Identifier: BSD-2-Clause
 * Holds blocks of 1 MiB and keeps reading parts of one: commands on standard input, an answer each.
 *   big N     N blocks, written once
 *   read I    a thread reads the first 64 pages of block I, again and again, from now on
 *   calm      it stops
 *   filter    a seccomp filter that kills who asks for perf_event_open */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../filter.h"

#define MIB   (1ul << 20)
#define PAGE  4096ul
#define MAX   256
#define PAGES 64
#define TIMES 16384 /* misses of each at most; as many each time would beat with the samples */

void pmu_load(const void *address, unsigned long times) __attribute__((weak));

static unsigned char *block[MAX];
static int blocks;
static volatile int which = -1;
static volatile unsigned long sum;

static void *reader(void *unused)
{
    unsigned long random = 88172645463325252ul;
    (void)unused;
    while (1) {
        int i = which;
        for (unsigned long k = 0; i >= 0 && k < PAGES; k++) {
            const unsigned char *at = block[i] + (k + 1) * PAGE;
            sum += *at;
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            if (pmu_load)
                pmu_load(at, random % TIMES);
        }
        usleep(500);
    }
    return NULL;
}

int main(void)
{
    char line[64], what[32];
    static pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pthread_create(&thread, NULL, reader, NULL) != 0)
        return 1;
    while (fgets(line, sizeof(line), stdin)) {
        int n = 0, fine = 1;
        if (sscanf(line, "%31s %d", what, &n) < 1)
            continue;
        for (int i = 0; !strcmp(what, "big") && i < n && blocks < MAX; i++) {
            block[blocks] = malloc(MIB);
            memset(block[blocks++], 7, MIB);
        }
        if (!strcmp(what, "read"))
            which = n < blocks ? n : -1;
        if (!strcmp(what, "calm"))
            which = -1;
        if (!strcmp(what, "filter"))
            fine = kill_on(SYS_perf_event_open, SYS_perf_event_open);
        for (int i = 0; i < blocks; i++)
            fine &= block[i][0] == 7 && block[i][MIB - 1] == 7;
        printf("%s\n", fine ? "ok" : "BROKEN");
    }
    return 0;
}
