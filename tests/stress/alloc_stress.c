/* SPDX-License-Identifier: BSD-2-Clause
 * Threads allocate, check, resize and free blocks of all sizes, also blocks made
 * by other threads and by threads that have ended. Built twice: linked to the
 * heaps (STRESS_DIRECT; sanitizers), and as a plain program to run under the
 * preload. Deterministic but for the interleaving.
 *   alloc_stress [threads] [rounds] [generations] [large]
 * large: blocks of 8 KiB to 1 MiB, and a bound on what the process has in memory for them. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#ifdef STRESS_DIRECT
#include "heap/heap.h"
#include "sys/os.h"

static char *base;
static size_t taken[HY_TIERS];
#define RANGE ((size_t)1 << 30)

static void *take(enum hy_tier t, size_t bytes)
{
    if (taken[t] + bytes > RANGE)
        return NULL;
    char *p = base + (t == HY_PM ? RANGE : 0) + taken[t];
    taken[t] += bytes;
    return os_commit(p, bytes) ? NULL : p;
}

static int purge(enum hy_tier t, void *p, size_t bytes)
{
    (void)t;
    return os_purge(p, bytes);
}

/* DRAM is short now and then, so that classes change their tier under way. */
static int64_t used[HY_TIERS];
static bool charge(enum hy_tier t, size_t bytes, bool force)
{
    int64_t now = __atomic_add_fetch(&used[t], (int64_t)bytes, __ATOMIC_RELAXED);
    if (force || t == HY_PM || now <= (int64_t)(24 * HY_MIB))
        return true;
    __atomic_sub_fetch(&used[t], (int64_t)bytes, __ATOMIC_RELAXED);
    return false;
}

static void discharge(enum hy_tier t, size_t bytes)
{
    __atomic_sub_fetch(&used[t], (int64_t)bytes, __ATOMIC_RELAXED);
    heap_reopen(t);
}

static void start(void)
{
    static const struct heap_host host = {take, purge, charge, discharge};
    const size_t bytes[HY_TIERS] = {RANGE, RANGE};
    void *p;
    if (os_reserve(2 * RANGE, HEAP_GRANULE, &p))
        exit(2);
    base = p;
    if (heap_init(base, bytes, &host))
        exit(2);
}

static struct heap_want want(size_t n)
{
    return (struct heap_want){
        .tier = n % 3 == 0 ? HY_PM : heap_favour(), .weight = 1, .own_run = n % 1009 == 0};
}

static void *get(size_t n)
{
    struct heap_want w = want(n);
    return heap_alloc(n, &w);
}

static void *get_zeroed(size_t n)
{
    struct heap_want w = want(n);
    return heap_alloc_zeroed(n, &w);
}

static void *get_aligned(size_t align, size_t n)
{
    struct heap_want w = want(n);
    return heap_alloc_aligned(align, n, &w);
}

static void put(void *p)
{
    if (p)
        heap_free(p);
}

static void *resize(void *p, size_t old, size_t n)
{
    if (heap_resize_in_place(p, n))
        return p;
    void *q = get(n);
    memcpy(q, p, old < n ? old : n);
    put(p);
    return q;
}

static void upkeep(unsigned round)
{
    if (round % 512 == 0) {
        heap_decay(HY_DRAM, 64 * HY_MIB);
        heap_decay(HY_PM, 64 * HY_MIB);
    }
    if (round % 4096 == 0)
        heap_trim(HY_DRAM);
    if (round % 256 == 0) /* others want DRAM now and then */
        heap_set_dram((enum heap_dram)(round / 256 % 3), UINT64_MAX);
}

static int finish(void)
{
    return heap_is_valid() ? 0 : 1;
}
#else
static void start(void)
{
}
static void *get(size_t n)
{
    return malloc(n);
}
static void *get_zeroed(size_t n)
{
    return calloc(1, n);
}
static void *get_aligned(size_t align, size_t n)
{
    void *p;
    return posix_memalign(&p, align, n) ? NULL : p;
}
static void put(void *p)
{
    free(p);
}
static void *resize(void *p, size_t old, size_t n)
{
    (void)old;
    return realloc(p, n);
}
static void upkeep(unsigned round)
{
    (void)round;
}
static int finish(void)
{
    return 0;
}
#endif

struct block { /* first bytes of every block */
    uint32_t size, seed;
};

#define SHARED 512
static struct block *shared[SHARED];
static unsigned rounds = 50000;
static int failed, large;
static int64_t live, most; /* bytes of blocks in use */

static unsigned char byte_of(const struct block *b, size_t i)
{
    return (unsigned char)(b->seed + i * 31);
}

static void count(int64_t bytes)
{
    int64_t now = __atomic_add_fetch(&live, bytes, __ATOMIC_RELAXED);
    int64_t before = __atomic_load_n(&most, __ATOMIC_RELAXED);
    while (now > before &&
           !__atomic_compare_exchange_n(&most, &before, now, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void drop(struct block *b)
{
    if (b)
        count(-(int64_t)b->size);
    put(b);
}

static void fill(struct block *b, uint32_t size, uint32_t seed)
{
    count(size);
    b->size = size;
    b->seed = seed;
    for (size_t i = sizeof(*b); i < size; i += 61)
        ((unsigned char *)b)[i] = byte_of(b, i);
}

static void check(const struct block *b, size_t upto)
{
    for (size_t i = sizeof(*b); i < upto; i += 61)
        if (((const unsigned char *)b)[i] != byte_of(b, i)) {
            __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
            fprintf(stderr, "byte %zu of a block of %u is wrong\n", i, b->size);
            return;
        }
}

static uint32_t pick_size(uint32_t r)
{
    uint32_t n;
    if (large) { /* half as many of each doubling */
        n = 8192u << __builtin_ctz(r >> 8 | 64);
        return n + (r >> 16) % n;
    }
    switch (r % 100) {
    case 0:
        n = (r >> 8) % 900000;
        break;
    case 1:
    case 2:
    case 3:
        n = (r >> 8) % 70000;
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
        n = (r >> 8) % 9000;
        break;
    default:
        n = (r >> 8) % 400;
        break;
    }
    return n < sizeof(struct block) ? (uint32_t)sizeof(struct block) : n;
}

static struct block *make(uint32_t r)
{
    uint32_t n = pick_size(r);
    struct block *b;
    if (r % 17 == 0) {
        b = get_zeroed(n);
        for (size_t i = 0; b && i < n; i += 113)
            if (((unsigned char *)b)[i]) {
                __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
                fprintf(stderr, "zeroed block of %u is not zero at %zu\n", n, i);
                break;
            }
    } else if (r % 19 == 0) {
        size_t align = (size_t)16 << (r >> 16) % 10;
        b = get_aligned(align, n);
        if ((uintptr_t)b & (align - 1))
            __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    } else {
        b = get(n);
    }
    if (!b) {
        fprintf(stderr, "no memory for %u\n", n);
        exit(3);
    }
    fill(b, n, r);
    return b;
}

static void *work(void *arg)
{
    uint32_t r = (uint32_t)(uintptr_t)arg * 2654435761u + 1;
    struct block *own[64] = {0};
    for (unsigned k = 0; k < rounds; k++) {
        r = r * 1664525u + 1013904223u;
        uint32_t x = r ^ (r >> 15);
        struct block **slot = &own[x % 64], *b;
        if (x % 5 == 0) { /* exchange with the others */
            b = __atomic_exchange_n(&shared[(x >> 8) % SHARED], *slot, __ATOMIC_ACQ_REL);
            *slot = b;
        } else if (*slot && x % 7 == 0) {
            uint32_t n = pick_size(x), old = (*slot)->size;
            check(*slot, old);
            count(-(int64_t)old);
            b = resize(*slot, old, n);
            check(b, old < n ? old : n);
            fill(b, n, x);
            *slot = b;
        } else {
            if (*slot)
                check(*slot, (*slot)->size);
            drop(*slot);
            *slot = make(x);
        }
        upkeep(k);
    }
    for (int i = 0; i < 64; i++)
        if (own[i] && i % 2) {
            check(own[i], own[i]->size);
            drop(own[i]);
        } else if (own[i]) { /* outlives its thread */
            drop(
                __atomic_exchange_n(&shared[(r + (unsigned)i) % SHARED], own[i], __ATOMIC_ACQ_REL));
        }
    return NULL;
}

/* What is freed is kept within bounds: at most as much as is in use (glibc .95 of it). */
static int keeps_too_much(void)
{
#ifndef STRESS_DIRECT
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("most in use %lld KiB, most in memory %ld KiB\n", (long long)most / 1024, u.ru_maxrss);
    return large && u.ru_maxrss > most / 1024 * 2;
#else
    return 0;
#endif
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 6;
    unsigned generations = argc > 3 ? (unsigned)atoi(argv[3]) : 4;
    if (argc > 2)
        rounds = (unsigned)atoi(argv[2]);
    large = argc > 4;
    if (threads > 64)
        threads = 64;
    start();
    for (unsigned g = 0; g < generations; g++) {
        pthread_t t[64];
        for (unsigned i = 0; i < threads; i++)
            if (pthread_create(&t[i], NULL, work, (void *)(uintptr_t)(g * 100 + i + 1)))
                return 2;
        for (unsigned i = 0; i < threads; i++)
            pthread_join(t[i], NULL);
    }
    for (int i = 0; i < SHARED; i++) {
        if (shared[i])
            check(shared[i], shared[i]->size);
        drop(shared[i]);
    }
    if (finish() || keeps_too_much() || live != 0)
        failed = 1;
    printf("%u threads, %u rounds, %u generations: %s\n", threads, rounds, generations,
           failed ? "FAILED" : "ok");
    return failed;
}
