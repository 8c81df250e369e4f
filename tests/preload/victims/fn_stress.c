/* SPDX-License-Identifier: BSD-2-Clause
 * Eight threads with random blocks from every function, checked when they are
 * freed, by the thread that made them or another. Arguments: steps, seed. */
#include "victim.h"

#include <malloc.h>

enum { THREADS = 8, SLOTS = 600, SHARED = 512 };

struct block {
    size_t size;
    uint64_t seed;
    unsigned char data[];
};

static struct block *_Atomic shared[SHARED];
static long steps = 15000;

static struct block *make(uint64_t *s)
{
    size_t n = random_size(s) + sizeof(struct block);
    struct block *b = NULL;
    void *p;
    switch (rnd(s) % 8) {
    case 0:
        b = calloc(1, n);
        CHECK(b && all_zero(b, n));
        break;
    case 1:
        CHECK(posix_memalign(&p, (size_t)16 << rnd(s) % 10, n) == 0);
        b = p;
        break;
    case 2:
        b = realloc(malloc(n / 3 + 1), n);
        break;
    case 3:
        b = memalign(64, n);
        break;
    default:
        b = malloc(n);
    }
    CHECK(b && (uintptr_t)b % 16 == 0);
    b->size = n - sizeof *b;
    b->seed = rnd(s);
    fill(b->data, b->size, b->seed);
    return b;
}

static void end(struct block *b, uint64_t *s)
{
    if (!b)
        return;
    CHECK(holds(b->data, b->size, b->seed));
    if (rnd(s) % 5 == 0) {
        size_t keep = b->size / 2 & ~(size_t)7;
        b = realloc(b, sizeof *b + keep);
        CHECK(b && holds(b->data, keep, b->seed));
    }
    free(b);
}

static void *run(void *arg)
{
    uint64_t s = (uint64_t)(uintptr_t)arg * 7919 + 13;
    struct block **slot = calloc(SLOTS, sizeof *slot);
    for (long i = 0; i < steps; i++) {
        unsigned k = (unsigned)(rnd(&s) % SLOTS);
        end(slot[k], &s);
        slot[k] = make(&s);
        if (i % 3 == 0) /* swap with what others made */
            slot[k] = __atomic_exchange_n(&shared[rnd(&s) % SHARED], slot[k], __ATOMIC_ACQ_REL);
    }
    for (int k = 0; k < SLOTS; k++)
        end(slot[k], &s);
    free(slot);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        steps = atol(argv[1]);
    uintptr_t seed = argc > 2 ? (uintptr_t)atol(argv[2]) : 1;
    for (int generation = 0; generation < 2; generation++) {
        pthread_t t[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&t[i], NULL, run, (void *)(seed * 100 + i + 1)) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(t[i], NULL) == 0);
    }
    uint64_t s = 5;
    for (int i = 0; i < SHARED; i++)
        end(__atomic_exchange_n(&shared[i], NULL, __ATOMIC_ACQ_REL), &s);
    puts("ok");
    return 0;
}
