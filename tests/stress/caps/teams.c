/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP teams: nested, dynamic, larger than the machine, with tasks; what the runtime answers
 * must fit the teams that come. The first line does not depend on the number of CPUs; the second
 * tells procs, max threads, team, and with omp_set_dynamic(1) at most so many.
 *
 *     caps-teams THREADS ROUNDS [late]   (THREADS 0: what the runtime takes by itself; late: first
 *                                        when the library has been looking for a while) */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long fib(int n)
{
    long a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a) if (n > 10)
    a = fib(n - 1);
#pragma omp task shared(b) if (n > 10)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

/* A program that divides its data by the runtime's answer: a team of another size would leave
 * some out. */
static long divided(long n)
{
    long *part = calloc((size_t)omp_get_max_threads(), sizeof(*part)), sum = 0;
    int parts = omp_get_max_threads();
    if (!part)
        exit(2);
#pragma omp parallel
    {
        int id = omp_get_thread_num(), all = omp_get_num_threads();
        if (id < parts)
            for (long i = id; i < n; i += all)
                part[id] += i;
    }
    for (int i = 0; i < parts; i++)
        sum += part[i];
    free(part);
    return sum;
}

/* Old and large enough for the library to look at who needs to be kept to the cap. */
static void begin_late(void)
{
    static void *keep[64];
    usleep(1100000);
    for (int i = 0; i < 64; i++)
        keep[i] = malloc(1 << 17);
    usleep(100000);
    for (int i = 0; i < 64; i++)
        free(keep[i]);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 0, rounds = argc > 2 ? atoi(argv[2]) : 1;
    if (argc > 3)
        begin_late();
    int procs = omp_get_num_procs(), max = omp_get_max_threads(), team = 0, dynamic = 0;
    long nested = 0, sum = 0, tasks = 0, inner_max = 0;
    int by_load = omp_get_dynamic(); /* then a runtime makes teams as small as it sees fit */

    if (threads > 0)
        omp_set_num_threads(threads);
    omp_set_max_active_levels(3);
    for (int r = 0; r < rounds; r++) {
        sum += divided(20000);
#pragma omp parallel num_threads(3) reduction(+ : nested)
        {
#pragma omp parallel num_threads(4) reduction(+ : nested)
            {
                nested += omp_get_thread_num() + 1;
#pragma omp barrier
            }
        }
#pragma omp parallel
#pragma omp single
        tasks += fib(14);
    }
    /* What the inner level is told, and what it gets. */
#pragma omp parallel num_threads(2) reduction(max : inner_max)
    {
        int told = omp_get_max_threads(), got = 0;
#pragma omp parallel
#pragma omp single
        got = omp_get_num_threads();
        inner_max = got > told ? 1 : 0;
    }
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    if (by_load)
        nested = 0;
    omp_set_dynamic(1);
#pragma omp parallel
#pragma omp single
    dynamic = omp_get_num_threads();
    printf("sum %ld nested %ld tasks %ld inner %ld\n", sum, nested, tasks, inner_max);
    printf("procs %d max %d team %d dynamic %d\n", procs, max, team, dynamic);
    return 0;
}
