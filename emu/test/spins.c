/* SPDX-License-Identifier: BSD-2-Clause
 * Threads that wait for one another without a call that blocks: spins HOW THREADS STEPS.
 * HOW: sweep, a wavefront over rows there and back, with plain flags and `omp flush`; or a
 * pipeline, in which a thread takes a number from the one before it, works, and hands its own on:
 * acquire, relaxed, yield, lock, swap say what its waits are made of. Nothing is volatile, and
 * what is handed on is known to this file alone, so that a compiler keeps in registers what it
 * may. Prints a sum and whether it is a pipeline's right one, and in virtual time what a pipeline's
 * step lasts and the whole has lasted. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmemu.h"

#pragma weak pmemu_vtime_ns

#define MOST  64
#define ROWS  17 /* the first and the last are the border */
#define CELLS 8000
#define WORK  160000

/* --- a wavefront ---------------------------------------------------------------- */

static unsigned long cell[ROWS + 1][CELLS];
static int there[ROWS + 1], back[ROWS + 1]; /* 1: what this row has made is not taken yet */

/* Each could be called by others and so is compiled by itself. With gcc's -fipa-reference the waits
 * of the second one do not end (emu/meson.build): leave their shape as it is. */
void sweep_there(unsigned long plane);
void sweep_back(unsigned long plane);

void sweep_there(unsigned long plane)
{
    int r;
#pragma omp for nowait schedule(static)
    for (r = 1; r < ROWS; r++) {
        if (r != 1)
            while (there[r - 1] == 0) {
#pragma omp flush
            }
        if (r != ROWS - 1)
            while (there[r] == 1) {
#pragma omp flush
            }
        for (int i = 0; i < CELLS; i++)
            cell[r][i] += cell[r - 1][i] * (plane + 1);
        if (r != ROWS - 1)
            there[r] = 1;
        if (r != 1)
            there[r - 1] = 0;
    }
}

void sweep_back(unsigned long plane)
{
    int r;
#pragma omp for nowait schedule(static)
    for (r = ROWS - 1; r > 0; r--) {
        if (r != ROWS - 1)
            while (back[r + 1] == 0) {
#pragma omp flush
            }
        if (r != 1)
            while (back[r] == 1) {
#pragma omp flush
            }
        for (int i = 0; i < CELLS; i++)
            cell[r][i] += cell[r - 1][i] * (plane + 1);
        if (r != 1)
            back[r] = 1;
        if (r != ROWS - 1)
            back[r + 1] = 0;
    }
}

static long by_sweep(int me, int threads, int steps)
{
    unsigned long sum = 0;

    (void)me, (void)threads;
#pragma omp for
    for (int i = 0; i < CELLS * (ROWS + 1); i++)
        cell[i / CELLS][i % CELLS] = (unsigned long)i % 7919;
    for (unsigned long k = 0; k < (unsigned long)steps / 2; k++)
        sweep_there(k);
#pragma omp barrier
    for (unsigned long k = 0; k < (unsigned long)steps / 2; k++)
        sweep_back(k);
#pragma omp barrier
    for (int i = 0; i < CELLS * (ROWS + 1); i++)
        sum = sum * 31 + cell[i / CELLS][i % CELLS];
    return (long)(sum & 0xffffffff);
}

/* --- pipelines ------------------------------------------------------------------- */

static long work(long v)
{
    for (int i = 0; i < WORK; i++)
        v = (v * 48271 + i) % 2147483647;
    return v;
}

static int full[MOST + 1];
static atomic_int ready[MOST + 1];
static long carried[MOST + 1];
static pthread_spinlock_t lock[MOST + 1];
static int taken[MOST + 1]; /* a lock of instructions alone */

static void acquire_wait(int at, int until)
{
    while (atomic_load_explicit(&ready[at], memory_order_acquire) != until)
        ;
}

static void acquire_set(int at, int to)
{
    atomic_store_explicit(&ready[at], to, memory_order_release);
}

static void relaxed_wait(int at, int until)
{
    while (atomic_load_explicit(&ready[at], memory_order_relaxed) != until)
        ;
    atomic_thread_fence(memory_order_acquire);
}

static void relaxed_set(int at, int to)
{
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&ready[at], to, memory_order_relaxed);
}

static void yield_wait(int at, int until)
{
    while (atomic_load_explicit(&ready[at], memory_order_acquire) != until)
        sched_yield();
}

static void lock_wait(int at, int until)
{
    for (bool done = false; !done;) {
        pthread_spin_lock(&lock[at]);
        done = full[at] == until;
        pthread_spin_unlock(&lock[at]);
    }
}

static void lock_set(int at, int to)
{
    pthread_spin_lock(&lock[at]);
    full[at] = to;
    pthread_spin_unlock(&lock[at]);
}

static void swap_lock(int at)
{
    int was;
    do {
        was = 1;
        __asm__ volatile("xchg %0, %1" : "+r"(was), "+m"(taken[at]) : : "memory");
    } while (was);
}

static void swap_unlock(int at)
{
    __asm__ volatile("movl $0, %0" : "=m"(taken[at]) : : "memory");
}

static void swap_wait(int at, int until)
{
    for (bool done = false; !done;) {
        swap_lock(at);
        done = full[at] == until;
        swap_unlock(at);
    }
}

static void swap_set(int at, int to)
{
    swap_lock(at);
    full[at] = to;
    swap_unlock(at);
}

/* The waits are written out in each kind: what the compiler keeps over one would not be seen
 * across a call. */
#define PIPELINE(kind, waits, sets)                                                                \
    static long kind(int me, int threads, int steps)                                               \
    {                                                                                              \
        long sum = 0, v;                                                                           \
        for (int k = 0; k < steps; k++) {                                                          \
            v = k;                                                                                 \
            if (me > 0) {                                                                          \
                waits(me, 1);                                                                      \
                v = carried[me];                                                                   \
                sets(me, 0);                                                                       \
            }                                                                                      \
            v = work(v);                                                                           \
            if (me + 1 < threads) {                                                                \
                waits(me + 1, 0);                                                                  \
                carried[me + 1] = v;                                                               \
                sets(me + 1, 1);                                                                   \
            }                                                                                      \
            sum += v;                                                                              \
        }                                                                                          \
        return sum;                                                                                \
    }

PIPELINE(by_acquire, acquire_wait, acquire_set)
PIPELINE(by_relaxed, relaxed_wait, relaxed_set)
PIPELINE(by_yield, yield_wait, acquire_set)
PIPELINE(by_lock, lock_wait, lock_set)
PIPELINE(by_swap, swap_wait, swap_set)

/* What the last thread of a pipeline must come to. */
static long one_after_another(int threads, int steps)
{
    long sum = 0;
    for (long k = 0, v = 0; k < steps; sum += v, k++) {
        v = k;
        for (int i = 0; i < threads; i++)
            v = work(v);
    }
    return sum;
}

static double now_us(void)
{
    return pmemu_vtime_ns ? (double)pmemu_vtime_ns() / 1000 : 0;
}

static double step_us(void)
{
    double start = now_us();
    volatile long v = 1;
    for (int i = 0; i < 4; i++)
        v = work(v);
    return (now_us() - start) / 4;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        long (*run)(int me, int threads, int steps);
    } kinds[] = {{"sweep", by_sweep}, {"acquire", by_acquire}, {"relaxed", by_relaxed},
                 {"yield", by_yield}, {"lock", by_lock},       {"swap", by_swap}};
    int threads = argc > 3 ? atoi(argv[2]) : 0, steps = argc > 3 ? atoi(argv[3]) : 0;
    long (*run)(int, int, int) = NULL, sum = 0;
    double start, step, took;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && argc > 1; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            run = kinds[i].run;
    if (!run || threads < 1 || threads > MOST || steps > MOST)
        return 2;
    for (int i = 0; i <= MOST; i++)
        pthread_spin_init(&lock[i], PTHREAD_PROCESS_PRIVATE);
    step = step_us();
    omp_set_num_threads(threads);
#pragma omp parallel
    {
    /* the team is there before the time counts */
#pragma omp barrier
    } start = now_us();
#pragma omp parallel
    {
        long mine = run(omp_get_thread_num(), threads, steps);
        if (omp_get_thread_num() == threads - 1)
            sum = mine;
    }
    took = now_us() - start;
    printf("sum %ld right %d step_us %.1f took_us %.1f\n", sum,
           run != by_sweep && sum == one_after_another(threads, steps), step, took);
    return 0;
}
