/* SPDX-License-Identifier: BSD-2-Clause
 * A program without OpenMP that opens a library with it, as Python does: pl_tasks_opener PLUGIN. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    enum { BLOCKS = 16, WORDS = 32768 };
    uint64_t *data = calloc((size_t)BLOCKS * WORDS, sizeof(*data)), sum = 0;
    void *h = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*run)(uint64_t *, int, int) = NULL;

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
