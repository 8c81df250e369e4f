/* SPDX-License-Identifier: BSD-2-Clause
 * Tasks in a library that comes by dlopen, with the runtime that it is linked with: the program
 * that opens it may have none. */
#include <stdint.h>

void plugin_tasks(uint64_t *data, int blocks, int words);
void plugin_tasks(uint64_t *data, int blocks, int words)
{
#pragma omp parallel
#pragma omp single
    for (int r = 0; r < 4; r++)
        for (int b = 0; b < blocks; b++) {
            uint64_t *p = data + (long)b * words;
#pragma omp task depend(inout : p[0]) firstprivate(p, words, r)
            for (int i = 0; i < words; i++)
                p[i] = p[i] * 3 + (uint64_t)(r + i);
        }
}
