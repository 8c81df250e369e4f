/* SPDX-License-Identifier: BSD-2-Clause
 * loops KIND SIZE COUNT: COUNT operations of one kind and nothing else. Two runs
 * with different counts differ by the cost of the operation alone, whatever start-up
 * and first use cost (bench/instr.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 100

static void need(const void *block)
{
    if (!block) {
        fputs("loops: out of memory\n", stderr);
        exit(1);
    }
}

static void pair(size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        volatile char *block = malloc(size);

        need((const void *)block);
        *block = 1;
        free((void *)block);
    }
}

static void batch(size_t size, long count)
{
    volatile char *block[BATCH];

    for (long i = 0; i < count; i += BATCH) {
        for (int k = 0; k < BATCH; k++) {
            block[k] = malloc(size);
            need((const void *)block[k]);
            *block[k] = 1;
        }
        for (int k = 0; k < BATCH; k++)
            free((void *)block[k]);
    }
}

/* Sizes from 16 bytes up to `size`, a power of two, as programs mix them: each next one from a
 * generator that costs two instructions. */
static void mixed(size_t size, long count)
{
    volatile char *block[BATCH];
    unsigned r = 1;

    for (long i = 0; i < count; i += BATCH) {
        for (int k = 0; k < BATCH; k++) {
            r = r * 1664525u + 1013904223u;
            block[k] = malloc((r >> 16 & (size - 1)) | 16);
            need((const void *)block[k]);
            *block[k] = 1;
        }
        for (int k = 0; k < BATCH; k++)
            free((void *)block[k]);
    }
}

static void zeroed(size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        volatile char *block = calloc(1, size);

        need((const void *)block);
        *block = 1;
        free((void *)block);
    }
}

static void grow(size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        char *block = malloc(size), *more;

        need(block);
        *(volatile char *)block = 1;
        more = realloc(block, 2 * size);
        need(more);
        free(more);
    }
}

static void aligned(size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        void *block = NULL;

        if (posix_memalign(&block, 64, size) != 0)
            need(NULL);
        *(volatile char *)block = 1;
        free(block);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(size_t size, long count);
    } kind[] = {{"pair", pair},     {"batch", batch},  {"mix", mixed},
                {"calloc", zeroed}, {"realloc", grow}, {"aligned", aligned}};

    for (size_t i = 0; argc == 4 && i < sizeof(kind) / sizeof(kind[0]); i++) {
        if (strcmp(argv[1], kind[i].name) == 0) {
            kind[i].run((size_t)strtoul(argv[2], NULL, 10), strtol(argv[3], NULL, 10));
            return 0;
        }
    }
    fputs("usage: loops pair|batch|mix|calloc|realloc|aligned SIZE COUNT\n", stderr);
    return 2;
}
