/* SPDX-License-Identifier: BSD-2-Clause
 * Frame of the workloads: arguments, threads with a barrier, the result line.
 *
 * A workload is one file that defines `workload`. prepare() runs alone and makes the
 * data with wl_new(), work() runs once in every thread (the part to be timed), verify()
 * runs alone. Data come from posix_memalign, so a preloaded library places them.
 *
 * The result registered with wl_result() depends on size, rounds and seed, never on the
 * number of threads: integers, or floating-point sums in an order that is fixed by
 * blocks. No libm function but sqrt: its others differ between CPUs (FMA variants), and
 * call-outs do not see inside it. Compile with -ffp-contract=off.
 *
 * Ownership: wl_new() memory belongs to the frame, which frees it after verify(). */
#ifndef BENCH_WORKLOADS_COMMON_H
#define BENCH_WORKLOADS_COMMON_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WL_MAX_THREADS 64
/* Independent streams of work where the random order must not depend on the threads:
 * a thread does some of the lanes, and all lanes are done whatever their number. */
#define WL_LANES 64
#define WL_ALIGN 64

enum wl_kind { WL_U32, WL_U64, WL_F64 };

struct wl {
    unsigned threads, rounds;
    size_t bytes; /* footprint asked for; a workload stays below it, near it */
    uint64_t seed;
    pthread_barrier_t barrier;
    void *result;
    size_t count;
    enum wl_kind kind;
};

struct workload {
    const char *name, *about;
    unsigned size, rounds; /* defaults; size in MiB */
    void (*prepare)(struct wl *w);
    void (*work)(struct wl *w, unsigned id);
    bool (*verify)(struct wl *w);
};

extern const struct workload workload;

/* Not zeroed, aligned to WL_ALIGN; ends the program when memory is short. Only from prepare(). */
void *wl_new(size_t count, size_t size);
/* The words that make the checksum, and one of which --corrupt changes before verify(). */
void wl_result(struct wl *w, void *result, size_t count, enum wl_kind kind);
/* The program begins to do something else with its data (of its own accord; every run begins
 * with phase 0 and ends with WL_ENDED): for who is preloaded and wants to know, bench_phase().
 * By one thread. */
#define WL_ENDED (~0u)
void wl_phase(unsigned number);
/* Ends the program with status 1; from any thread. */
void wl_fail(const char *what) __attribute__((noreturn, cold));

static inline void wl_barrier(struct wl *w)
{
    pthread_barrier_wait(&w->barrier);
}

/* The part [*lo, *hi) of n that belongs to thread id. */
static inline void wl_part(const struct wl *w, size_t n, unsigned id, size_t *lo, size_t *hi)
{
    *lo = n * id / w->threads;
    *hi = n * (id + 1) / w->threads;
}

/* Random numbers without a state: what was filled in can be computed again by verify(). */
static inline uint64_t wl_hash(uint64_t seed, uint64_t i)
{
    uint64_t x = seed * 0xa0761d6478bd642fu + i * 0x9e3779b97f4a7c15u + 0x1b873593u;

    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
    x = (x ^ (x >> 29)) * 0x9fb21c651e98df25u;
    return x ^ (x >> 32);
}

/* And with one, cheaper. */
static inline uint64_t wl_next(uint64_t *state)
{
    uint64_t x = *state += 0xa0761d6478bd642fu;

    x = (x ^ (x >> 31)) * 0x9fb21c651e98df25u;
    return x ^ (x >> 29);
}

/* Uniform in [0, n) without a division; n below 2^32. */
static inline uint64_t wl_below(uint64_t random, uint64_t n)
{
    return ((random >> 32) * n) >> 32;
}

/* Uniform in [0, 1). */
static inline double wl_unit(uint64_t random)
{
    return (double)(random >> 11) * 0x1p-53;
}

static inline double wl_abs(double x)
{
    return x < 0 ? -x : x;
}

/* sin(2 pi x), x of any size below 2^50; exact at the quarters. */
double wl_sin_turn(double x);
/* The largest integer whose square is not above x. */
size_t wl_root(size_t x);

#endif
