/* SPDX-License-Identifier: BSD-2-Clause
 * MPI processes with threads each: barriers and sums between processes, teams within. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define BYTES   ((size_t)4 << 20)

static pthread_barrier_t barrier;
static long parts[THREADS];
static char *data;

static void *work(void *p)
{
    long id = (long)p;
    for (int r = 0; r < 50; r++) {
        memset(data + (size_t)id * (BYTES / THREADS), r, BYTES / THREADS);
        parts[id] += data[(size_t)id * (BYTES / THREADS) + 77] * (id + 1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, ranks;
    long mine = 0, all = 0;
    pthread_t t[THREADS];

    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    data = malloc(BYTES);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int round = 0; round < 5; round++) {
        for (long i = 0; i < THREADS; i++)
            if (pthread_create(&t[i], NULL, work, (void *)i) != 0)
                MPI_Abort(MPI_COMM_WORLD, 3);
        for (int i = 0; i < THREADS; i++)
            pthread_join(t[i], NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        mine = parts[0] + parts[1] + parts[2] + rank;
        MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d ranks: %ld\n", ranks, all);
    free(data);
    MPI_Finalize();
    return 0;
}
