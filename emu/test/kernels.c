/* SPDX-License-Identifier: BSD-2-Clause
 * Small kernels with known memory behaviour, built twice: plain and instrumented.
 *   kernels KIND THREADS ROUNDS [KiB [malloc|FILE]]
 * KIND: stream (triad), chase (dependent loads), index (the same by number, i = next[i]),
 * update (chase that also writes), gups
 * (random updates), compute, copy (memcpy), read and write (a word of each line, in
 * order), rread and rwrite (of random lines). Prints 'KIND THREADS checksum N virtual_us
 * N'; the arrays come from malloc or from a mapping of FILE. With KERNEL_SAY set, a line
 * 'running' on stderr tells that the arrays are ready. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmemu.h"

#define MAX_THREADS 256

#pragma weak pmemu_vtime_ns

struct node {
    struct node *next;
    uint64_t value, pad[6];
};

static size_t threads, rounds, kib, elements;
static uint64_t *a, *b, *c, sums[MAX_THREADS];
static struct node *nodes;
static pthread_barrier_t all;

static void *get(size_t bytes, const char *file)
{
    void *p;
    int fd;
    if (!file || strcmp(file, "malloc") == 0)
        return calloc(1, bytes);
    fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        perror(file);
        exit(1);
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static void stream(size_t from, size_t to)
{
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = from; i < to; i++)
            a[i] = b[i] + 3 * c[i];
        pthread_barrier_wait(&all);
    }
}

static uint64_t chase(size_t from, size_t steps)
{
    struct node *n = nodes + from;
    uint64_t sum = 0;
    for (size_t i = 0; i < steps; i++) {
        sum += n->value;
        n = n->next;
    }
    return sum;
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void gups(size_t id, size_t updates)
{
    uint64_t x = 88172645463325252u + id * 7919;
    for (size_t i = 0; i < updates; i++)
        __atomic_store_n(&a[next_random(&x) % elements], x, __ATOMIC_RELAXED);
}

static uint64_t compute(size_t id, size_t steps)
{
    uint64_t x = 88172645463325252u + id, sum = 0;
    for (size_t i = 0; i < steps; i++)
        if (next_random(&x) & 1)
            sum += x >> 7;
    return sum;
}

static uint64_t chase_by_index(size_t from, size_t steps)
{
    uint64_t i = from & ~(size_t)7;
    for (; steps > 0; steps--)
        i = a[i];
    return i;
}

static uint64_t update(size_t from, size_t steps)
{
    struct node *n = nodes + from;
    for (size_t i = 0; i < steps; i++) {
        struct node *next = n->next;
        n->value = i;
        n = next;
    }
    return n->value;
}

/* Eight words are a line: one access each, as a vector load or store would be. */
static uint64_t read_lines(size_t from, size_t to)
{
    uint64_t sum = 0;
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = from; i < to; i += 8)
            sum += a[i];
    return sum;
}

static void write_lines(size_t from, size_t to)
{
    for (size_t r = 0; r < rounds; r++)
        for (size_t i = from; i < to; i += 8)
            a[i] = r;
}

static uint64_t read_randomly(size_t id, size_t times)
{
    uint64_t x = 88172645463325252u + id * 7919, sum = 0;
    for (size_t i = 0; i < times; i++)
        sum += a[next_random(&x) % elements];
    return sum;
}

static void *run(void *arg)
{
    size_t id = (size_t)arg, from = elements * id / threads, to = elements * (id + 1) / threads;
    size_t share = rounds / threads;
    const char *kind = getenv("KERNEL");

    pthread_barrier_wait(&all);
    if (strcmp(kind, "stream") == 0)
        stream(from, to);
    else if (strcmp(kind, "chase") == 0)
        sums[id] = chase(from, share);
    else if (strcmp(kind, "index") == 0)
        sums[id] = chase_by_index(from, share);
    else if (strcmp(kind, "update") == 0)
        sums[id] = update(from, share);
    else if (strcmp(kind, "gups") == 0 || strcmp(kind, "rwrite") == 0)
        gups(id, share);
    else if (strcmp(kind, "rread") == 0)
        sums[id] = read_randomly(id, share);
    else if (strcmp(kind, "read") == 0)
        sums[id] = read_lines(from, to);
    else if (strcmp(kind, "write") == 0)
        write_lines(from, to);
    else if (strcmp(kind, "compute") == 0)
        sums[id] = compute(id, share);
    else if (strcmp(kind, "copy") == 0)
        for (size_t r = 0; r < rounds; r++)
            memcpy(a + from, b + from, (to - from) * 8);
    pthread_barrier_wait(&all);
    return NULL;
}

/* One cycle through `n` elements, by a stride without a factor in common. */
static size_t *cycle(size_t n)
{
    size_t stride = n * 38 / 100 | 1, *order = calloc(n, sizeof(*order));
    for (;; stride += 2) {
        size_t x = stride, y = n;
        while (y) {
            size_t r = x % y;
            x = y;
            y = r;
        }
        if (x == 1)
            break;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = i * stride % n;
    return order;
}

static void link_nodes(void)
{
    size_t *order = cycle(elements);
    for (size_t i = 0; i < elements; i++) {
        nodes[order[i]].next = &nodes[order[(i + 1) % elements]];
        nodes[order[i]].value = order[i];
    }
    free(order);
}

/* In random order: numbers in steps all alike would be a prefetcher's. */
static void link_lines(void)
{
    size_t n = elements / 8, *order = cycle(n);
    uint64_t x = 88172645463325252u;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = next_random(&x) % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (size_t i = 0; i < n; i++)
        a[order[i] * 8] = order[(i + 1) % n] * 8;
    free(order);
}

static int64_t now(void)
{
    return pmemu_vtime_ns ? pmemu_vtime_ns() : 0;
}

int main(int argc, char **argv)
{
    pthread_t thread[MAX_THREADS];
    const char *kind = argc > 3 ? argv[1] : "", *file = argc > 5 ? argv[5] : NULL;
    uint64_t sum = 0;
    int64_t t0, t1;

    if (argc < 4)
        return 2;
    threads = (size_t)atoi(argv[2]);
    rounds = (size_t)atol(argv[3]);
    kib = argc > 4 ? (size_t)atol(argv[4]) : 32768;
    setenv("KERNEL", kind, 1);
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    if (strcmp(kind, "chase") == 0 || strcmp(kind, "update") == 0) {
        elements = kib * 1024 / sizeof(struct node);
        nodes = get(elements * sizeof(struct node), file);
        link_nodes();
    } else {
        size_t arrays = strcmp(kind, "stream") == 0 ? 3 : strcmp(kind, "copy") == 0 ? 2 : 1;
        elements = kib * 1024 / 8 / arrays;
        a = get(arrays * elements * 8, file);
        b = a + elements * (arrays > 1);
        c = b + elements * (arrays > 2);
        for (size_t i = 0; i < arrays * elements; i++)
            a[i] = i;
        if (strcmp(kind, "index") == 0)
            link_lines();
    }
    pthread_barrier_init(&all, NULL, (unsigned)threads);
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, run, (void *)i) != 0)
            return 1;
    if (getenv("KERNEL_SAY"))
        fprintf(stderr, "running\n");
    t0 = now();
    run(NULL);
    t1 = now();
    for (size_t i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < threads; i++)
        sum += sums[i];
    for (size_t i = 0; a && i < elements; i += 64)
        sum = sum * 31 + a[i];
    printf("%s %zu checksum %llu virtual_us %lld\n", kind, threads, (unsigned long long)sum,
           (long long)((t1 - t0) / 1000));
    return 0;
}
