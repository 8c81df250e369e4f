/* SPDX-License-Identifier: BSD-2-Clause
 * Threads cancelled between allocations (cleanup handlers free), pthread_exit
 * with destructors that allocate, main that leaves by pthread_exit while others
 * go on; the process ends with the last thread.
 * any: cancelled at any moment, also inside malloc (libc's hangs now and then). */
#include "victim.h"

static pthread_key_t key[4];
static long _Atomic cleaned, destroyed;

static void cleanup(void *p)
{
    free(p);
    free(malloc(5000));
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

/* Allocates anew in each round of destructors, also after the thread's own
 * caches (and memkind's) have been torn down. */
static void destructor(void *p)
{
    uintptr_t round = *(unsigned char *)p;
    free(p);
    void *big = malloc(2000000), *small = calloc(1, 40), *pages = valloc(9000);
    CHECK(big && small && pages && all_zero(small, 40));
    memset(big, 1, 2000000);
    free(big);
    free(small);
    free(pages);
    if (round < 3)
        for (int k = 0; k < 4; k++)
            if (!pthread_getspecific(key[k])) {
                unsigned char *again = malloc(700);
                *again = (unsigned char)(round + 1);
                pthread_setspecific(key[k], again);
                break;
            }
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void *endless(void *arg)
{
    volatile uint64_t s = (uintptr_t)arg + 1;
    for (int k = 0; k < 4; k++)
        pthread_setspecific(key[k], calloc(1, 300));
    for (;;) {
        uint64_t seed = s;
        char *p = malloc(random_size(&seed) + 1);
        s = seed;
        pthread_cleanup_push(cleanup, p);
        p[0] = 1;
        pthread_testcancel();
        pthread_cleanup_pop(0);
        free(p);
    }
    return NULL;
}

static void *any_moment(void *arg)
{
    uint64_t s = (uintptr_t)arg * 77 + 1;
    void *block[64] = {0};
    CHECK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
    for (;;) {
        unsigned i = rnd(&s) % 64;
        free(block[i]);
        block[i] = malloc((s >> 8) % 4 ? (s >> 16) % 3000 : (s >> 16) % 3000000);
    }
    return NULL;
}

static int cancel_at_any_moment(void)
{
    for (uintptr_t round = 0; round < 60; round++) {
        pthread_t t[4];
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(pthread_create(&t[i], NULL, any_moment, (void *)(round * 4 + i)) == 0);
        nap_us(2000);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_cancel(t[i]) == 0);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_join(t[i], NULL) == 0);
    }
    for (size_t i = 0; i < 1000; i++)
        free(malloc(i * 1000));
    puts("ok");
    return 0;
}

static void *leaves(void *arg)
{
    pthread_setspecific(key[0], calloc(1, 100));
    if (arg)
        pthread_exit(malloc(100));
    return malloc(200);
}

static void *last(void *arg)
{
    nap_us(30000);
    for (int i = 0; i < 5000; i++)
        free(malloc((size_t)i * 7));
    free(arg);
    printf("the last thread\n");
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return cancel_at_any_moment();
    for (int k = 0; k < 4; k++)
        CHECK(pthread_key_create(&key[k], destructor) == 0);
    for (int round = 0; round < 30; round++) {
        pthread_t t[4];
        for (uintptr_t i = 0; i < 4; i++)
            CHECK(pthread_create(&t[i], NULL, endless, (void *)i) == 0);
        nap_us(1000);
        for (int i = 0; i < 4; i++)
            CHECK(pthread_cancel(t[i]) == 0);
        for (int i = 0; i < 4; i++) {
            void *r;
            CHECK(pthread_join(t[i], &r) == 0 && r == PTHREAD_CANCELED);
        }
        void *r;
        CHECK(pthread_create(&t[0], NULL, leaves, (void *)(uintptr_t)(round % 2)) == 0 &&
              pthread_join(t[0], &r) == 0);
        free(r);
    }
    CHECK(cleaned <= 120 && cleaned > 0 && destroyed > 400);
    pthread_t t;
    CHECK(pthread_create(&t, NULL, last, malloc(400000)) == 0);
    pthread_detach(t);
    pthread_exit(NULL);
}
