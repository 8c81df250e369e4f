/* SPDX-License-Identifier: BSD-2-Clause
 * pl_lines THREADS KIB MS [HOT [EIGHTH]]: on the emulated machine, threads write a word of each
 * line of one block, again and again, until MS of virtual time have passed (0: never) or standard
 * input ends, and more often HOT KiB of another one, or of the block itself from an eighth on.
 * Prints 'up' once they do, and at the end of how many pages each eighth of the block is, and how
 * many of them lie on DRAM. */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmemu.h"

#define MAX_THREADS 16
#define LINE_WORDS  8

static uint64_t *block, *hot;
static size_t words, hot_words, threads;
static int64_t end_ns = INT64_MAX;
static int ended;

static int input_ends(void)
{
    struct pollfd p = {.fd = 0, .events = POLLIN | POLLHUP};
    return poll(&p, 1, 0) > 0;
}

/* A thread's share of words, or the k-th of so many parts of it. */
static void write_part(uint64_t *at, size_t n, size_t id, size_t k, size_t parts, uint64_t value)
{
    size_t begin = n * id / threads, share = n * (id + 1) / threads - begin;

    for (size_t i = share * k / parts; i < share * (k + 1) / parts; i += LINE_WORDS)
        at[begin + i] = value;
}

static void *run(void *arg)
{
    size_t id = (size_t)arg;

    for (uint64_t round = 0; !__atomic_load_n(&ended, __ATOMIC_RELAXED); round++) {
        for (size_t k = 0; k < 8; k++) {
            write_part(block, words, id, k, 8, round);
            write_part(hot, hot_words, id, 0, 1, round);
        }
        if (id == 0 && (pmemu_vtime_ns() >= end_ns || input_ends()))
            __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void tell_places(void)
{
    size_t pages = words * sizeof(*block) / 4096;
    for (size_t k = 0; k < 8; k++) {
        size_t n = 0, dram = 0;
        for (size_t i = pages * k / 8; i < pages * (k + 1) / 8; i++, n++)
            dram += pmemu_tier_of((char *)block + i * 4096) == 0;
        printf("%zu %zu\n", n, dram);
    }
}

int main(int argc, char **argv)
{
    pthread_t thread[MAX_THREADS];

    if (argc < 4 || (threads = strtoul(argv[1], NULL, 10)) < 1 || threads > MAX_THREADS)
        return 2;
    words = strtoul(argv[2], NULL, 10) * 1024 / sizeof(*block);
    if (strtol(argv[3], NULL, 10) > 0)
        end_ns = pmemu_vtime_ns() + strtol(argv[3], NULL, 10) * 1000000;
    block = calloc(words, sizeof(*block));
    hot_words = argc > 4 ? strtoul(argv[4], NULL, 10) * 1024 / sizeof(*hot) : 0;
    hot = argc > 5 ? block + words / 8 * strtoul(argv[5], NULL, 10)
                   : malloc(hot_words * sizeof(*hot) + 1);
    if (!block || !hot)
        return 1;
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, (void *)i) != 0)
            return 1;
    puts("up");
    fflush(stdout);
    run(NULL);
    for (size_t i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    tell_places();
    return 0;
}
