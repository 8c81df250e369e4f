/* SPDX-License-Identifier: BSD-2-Clause
 * A program without OpenMP that opens a library with it, as Python does: pl_tasks_opener PLUGIN.
 * Without PLUGIN, what the names of the runtime do where there is none. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void run_fn(void *);
extern void GOMP_task(run_fn *, void *, void (*)(void *, void *), long, long, bool, unsigned,
                      void **, int, void *) __attribute__((weak));
extern void GOMP_taskloop(run_fn *, void *, void (*)(void *, void *), long, long, unsigned,
                          unsigned long, int, long, long, long) __attribute__((weak));
extern void GOMP_taskloop_ull(run_fn *, void *, void (*)(void *, void *), long, long, unsigned,
                              unsigned long, int, unsigned long long, unsigned long long,
                              unsigned long long) __attribute__((weak));

struct block {
    long from, to, value;
};

static void show(void *p)
{
    const struct block *b = p;
    if (b->to)
        printf(" %ld to %ld", b->from, b->to);
    else
        printf(" %ld", b->value);
}

static void copy(void *to, void *from)
{
    memcpy(to, from, sizeof(struct block));
}

static int without_runtime(void)
{
    struct block b = {.value = 41};
    printf("task");
    if (GOMP_task)
        GOMP_task(show, &b, NULL, sizeof(b), 8, true, 0, NULL, 0, NULL);
    else
        printf(" none");
    printf(", loops");
    if (GOMP_taskloop)
        GOMP_taskloop(show, &b, NULL, sizeof(b), 8, 0, 0, 0, 10, 20, 1);
    else
        printf(" none");
    if (GOMP_taskloop_ull)
        GOMP_taskloop_ull(show, &b, copy, sizeof(b), 8, 0, 0, 0, 10, 20, 1);
    else
        printf(" none");
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    enum { BLOCKS = 16, WORDS = 32768 };
    uint64_t *data = calloc((size_t)BLOCKS * WORDS, sizeof(*data)), sum = 0;
    void *h = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*run)(uint64_t *, int, int) = NULL;

    if (argc < 2)
        return without_runtime();
    if (h)
        *(void **)&run = dlsym(h, "plugin_tasks");
    if (!run || !data)
        return 1;
    for (int i = 0; i < 3; i++)
        run(data, BLOCKS, WORDS);
    for (int i = 0; i < BLOCKS * WORDS; i++)
        sum = sum * 31 + data[i];
    printf("opener %016lx\n", (unsigned long)sum);
    return 0;
}
