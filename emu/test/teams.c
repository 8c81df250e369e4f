/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP: teams ROUNDS KiB. Loops with uneven shares, barriers and a reduction; prints the
 * result and virtual time. */
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "pmemu.h"

#pragma weak pmemu_vtime_ns

static int64_t now(void)
{
    return pmemu_vtime_ns ? pmemu_vtime_ns() : 0;
}

int main(int argc, char **argv)
{
    long rounds = argc > 2 ? atol(argv[1]) : 1, n = argc > 2 ? atol(argv[2]) * 128 : 1024;
    uint64_t *a = calloc((size_t)n, 8), sum = 0;
    int64_t start;
    int threads = 0;

    if (!a)
        return 1;
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        a[i] = (uint64_t)i;
    start = now();
#pragma omp parallel reduction(+ : sum)
    {
#pragma omp single
        threads = omp_get_num_threads();
        for (long r = 0; r < rounds; r++) {
            /* Later rounds give others more to do. */
            long share = n * (omp_get_thread_num() + 1 + r) % n / 4 + n / 8;
#pragma omp for schedule(static)
            for (long i = 0; i < n; i++)
                a[i] = a[i] * 3 + 1;
            for (long i = 0; i < share; i += 8)
                sum += a[i];
#pragma omp barrier
        }
    }
    printf("threads %d sum %llu virtual_us %lld\n", threads, (unsigned long long)sum,
           (long long)((now() - start) / 1000));
    return 0;
}
