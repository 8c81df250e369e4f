/* SPDX-License-Identifier: BSD-2-Clause
 * Producers allocate, consumers free: nothing is lost, resident memory stays
 * bounded (a cache that only grows shows here). */
#include "victim.h"

enum { DEPTH = 256, PAIRS = 3 };

struct queue {
    void *_Atomic slot[DEPTH];
};
static struct queue q[PAIRS];
static long items = 150000;

static void *produce(void *arg)
{
    struct queue *me = &q[(uintptr_t)arg];
    uint64_t s = (uintptr_t)arg + 5;
    for (long i = 0; i < items; i++) {
        size_t n = (i % 500 == 0 ? 300000 : rnd(&s) % 1500) + 16;
        uint64_t *p = malloc(n);
        CHECK(p);
        p[0] = (uint64_t)i * 3;
        p[1] = n;
        ((unsigned char *)p)[n - 1] = n > 16 ? 77 : ((unsigned char *)p)[n - 1];
        while (__atomic_load_n(&me->slot[i % DEPTH], __ATOMIC_ACQUIRE))
            sched_yield();
        __atomic_store_n(&me->slot[i % DEPTH], p, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void *consume(void *arg)
{
    struct queue *me = &q[(uintptr_t)arg];
    for (long i = 0; i < items; i++) {
        uint64_t *p;
        while (!(p = __atomic_load_n(&me->slot[i % DEPTH], __ATOMIC_ACQUIRE)))
            sched_yield();
        CHECK(p[0] == (uint64_t)i * 3 && (p[1] <= 16 || ((unsigned char *)p)[p[1] - 1] == 77));
        __atomic_store_n(&me->slot[i % DEPTH], NULL, __ATOMIC_RELEASE);
        free(p);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        items = atol(argv[1]);
    size_t before = statm(2), worst = 0;
    for (int round = 0; round < 2; round++) {
        pthread_t p[PAIRS], c[PAIRS];
        for (uintptr_t i = 0; i < PAIRS; i++)
            CHECK(pthread_create(&p[i], NULL, produce, (void *)i) == 0 && pthread_create(&c[i], NULL, consume, (void *)i) == 0);
        for (int i = 0; i < PAIRS; i++)
            CHECK(pthread_join(p[i], NULL) == 0 && pthread_join(c[i], NULL) == 0);
        size_t now = statm(2);
        worst = now > worst ? now : worst;
    }
    if (worst > before + ((size_t)96 << 20)) {
        printf("resident size went to %zu MiB\n", worst >> 20);
        return 1;
    }
    puts("ok");
    return 0;
}
