/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP: loops, tasks, nested teams; every thread allocates, others free. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long fib(int n)
{
    long a, b;
    if (n < 2)
        return n;
    char *mark = malloc((size_t)n * 40);
    memset(mark, n, (size_t)n * 40);
#pragma omp task shared(a) if (n > 12)
    a = fib(n - 1);
#pragma omp task shared(b) if (n > 12)
    b = fib(n - 2);
#pragma omp taskwait
    long ok = mark[n * 40 - 1] == (char)n;
    free(mark);
    return ok ? a + b : -1000000;
}

int main(void)
{
    enum { N = 3000000 };
    double *x = malloc(N * sizeof *x), *y = calloc(N, sizeof *y);
    double dot = 0;
#pragma omp parallel for
    for (long i = 0; i < N; i++)
        x[i] = (double)(i % 1000);
    for (int r = 0; r < 5; r++) {
#pragma omp parallel for schedule(static)
        for (long i = 0; i < N; i++)
            y[i] += x[i] * r;
    }
#pragma omp parallel for reduction(+ : dot)
    for (long i = 0; i < N; i++)
        dot += y[i];
    printf("dot %.0f\n", dot);
    long f = 0;
#pragma omp parallel
#pragma omp single
    f = fib(20);
    printf("fib %ld\n", f);
    char **block = calloc(20000, sizeof *block);
    long sum = 0;
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < 20000; i++) {
        block[i] = malloc((size_t)(i % 3000) + 1);
        memset(block[i], i, (size_t)(i % 3000) + 1);
    }
#pragma omp parallel for reduction(+ : sum) schedule(guided)
    for (int i = 19999; i >= 0; i--) {
        sum += (unsigned char)block[i][i % 3000];
        free(block[i]);
    }
    printf("sum %ld\n", sum);
    omp_set_max_active_levels(2);
    int teams = 0;
#pragma omp parallel num_threads(3) reduction(+ : teams)
    {
#pragma omp parallel num_threads(2) reduction(+ : teams)
        teams += omp_get_level();
    }
    printf("teams %d threads %d\n", teams, omp_get_max_threads());
    free(x);
    free(y);
    free(block);
    return 2;
}
