/* SPDX-License-Identifier: BSD-2-Clause
 * Kinds of misses: what real loops over arrays bigger than the caches are taken for. Every
 * access given here is one that misses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/misses.h"

#define N 65536

static struct emu_history history;
static unsigned count[EMU_MISS_KINDS];
static uint64_t x = 88172645463325252u;

static uint64_t next_random(void)
{
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

static int fresh(void **state)
{
    (void)state;
    memset(&history, 0, sizeof(history));
    memset(count, 0, sizeof(count));
    return 0;
}

static void touch(const void *p, unsigned write)
{
    uintptr_t a = (uintptr_t)p;
    count[emu_miss_kind(&history, a, write, (const void *)(a & ~(uintptr_t)63))]++;
}

static void *lines(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

/* A cycle through all of `n` in random order. */
static size_t *cycle(size_t n)
{
    size_t *order = malloc(n * sizeof(*order)), *next = malloc(n * sizeof(*next));
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = next_random() % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (size_t i = 0; i < n; i++)
        next[order[i]] = order[(i + 1) % n];
    free(order);
    return next;
}

static void streams_are_foreseen(void **state)
{
    double *a = lines(N * 64), *b = lines(N * 64);
    (void)state;
    for (size_t i = 0; i < N * 8; i += 8) {
        touch(&a[i], 0);
        touch(&b[N * 8 - 8 - i], 1); /* downwards */
    }
    assert_true(count[EMU_MISS_STREAM] >= 2 * N - 4);
    free(a);
    free(b);
}

struct node {
    uint64_t value, more[3];
    struct node *next;
    uint64_t rest[3];
};

static void linked_lists_are_dependent(void **state)
{
    struct node *nodes = lines(N * sizeof(*nodes)), *n = nodes;
    size_t *next = cycle(N);
    (void)state;
    for (size_t i = 0; i < N; i++)
        nodes[i].next = &nodes[next[i]];
    for (size_t i = 0; i < N; i++, n = n->next)
        touch(&n->value, 0);
    assert_true(count[EMU_MISS_DEPENDENT] > N * 98 / 100);
    free(nodes);
    free(next);
}

/* i = next[i], of 32 and 64 bits, and links by number in structs of 24 words. */
static void index_chases_are_dependent(void **state)
{
    uint32_t *small = lines(N * 64 * 4);
    uint64_t *large = lines(N * 64 * 8), *structs = lines(N * 24 * 8);
    size_t *next = cycle(N), i = 0, at;
    (void)state;
    for (size_t k = 0; k < N; k++) {
        small[k * 64] = (uint32_t)next[k] * 64;
        large[k * 64] = next[k] * 64;
        structs[k * 24] = next[k];
    }
    for (size_t k = 0; k < N; k++, i = small[i])
        touch(&small[i], 0);
    assert_true(count[EMU_MISS_DEPENDENT] > N * 98 / 100);
    fresh(NULL);
    for (size_t k = 0; k < N; k++, i = large[i])
        touch(&large[i], 0);
    assert_true(count[EMU_MISS_DEPENDENT] > N * 98 / 100);
    fresh(NULL);
    for (at = 0, i = 0; i < N; i++, at = structs[at * 24])
        touch(&structs[at * 24], 0);
    assert_true(count[EMU_MISS_DEPENDENT] > N * 98 / 100);
    free(small);
    free(large);
    free(structs);
    free(next);
}

/* What a core overlaps: none of these may be taken for dependent more than by accident. */
static void independent_accesses_are_not_dependent(void **state)
{
    uint64_t *identity = lines(N * 64), *table = lines(N * 64);
    uint32_t *columns = lines(N * 64);
    double *vector = lines(N * 64);
    (void)state;
    for (size_t i = 0; i < N * 8; i++) {
        identity[i] = i;
        table[i] = next_random();
        vector[i] = (double)i;
    }
    for (size_t i = 0; i < N * 16; i++)
        columns[i] = (uint32_t)(next_random() % (N * 8));
    for (size_t i = 0; i < N; i++) /* gups, also where each word is its own number */
        touch(&table[next_random() % (N * 8)], 0);
    for (size_t i = 0; i < N; i++)
        touch(&identity[next_random() % (N * 8)], 0);
    for (size_t i = 0; i < N; i++)
        touch(&identity[i * 8 * 37 % (N * 8)], 0); /* strides, round and round */
    for (size_t i = 0; i < N; i++) {               /* a sparse matrix times a vector */
        touch(&columns[i * 16], 0);
        for (size_t k = 0; k < 4; k++)
            touch(&vector[columns[i * 16 + k]], 0);
    }
    for (size_t i = 0; i < N; i++) /* radix: keys in order, buckets anywhere */
        touch(&table[(identity[i] * 2654435761u) % (N * 8)], 1);
    for (size_t i = 0; i < N; i++) /* columns of a matrix */
        touch(&vector[i % 64 * 512 + i / 64 * 8], 0);
    assert_true(count[EMU_MISS_DEPENDENT] < N / 1000);
    assert_true(count[EMU_MISS_RANDOM] > 5 * N);
    assert_true(count[EMU_MISS_STORE] > N * 9 / 10);
    free(identity);
    free(table);
    free(columns);
    free(vector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(streams_are_foreseen, fresh),
        cmocka_unit_test_setup(linked_lists_are_dependent, fresh),
        cmocka_unit_test_setup(index_chases_are_dependent, fresh),
        cmocka_unit_test_setup(independent_accesses_are_not_dependent, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
