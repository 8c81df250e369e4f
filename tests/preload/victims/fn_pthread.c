/* SPDX-License-Identifier: BSD-2-Clause
 * pthread_create passed through: attributes, results, errors, names, detached. */
#include "victim.h"

#include <limits.h>
#include <semaphore.h>

static sem_t done;

static void *square(void *arg)
{
    long n = (long)arg;
    char *p = malloc((size_t)n * 100 + 1);
    memset(p, 1, (size_t)n * 100 + 1);
    free(p);
    return (void *)(n * n);
}

static void *detached(void *arg)
{
    free(arg);
    sem_post(&done);
    return NULL;
}

static void *stack_of(void *arg)
{
    pthread_attr_t a;
    size_t size;
    CHECK(pthread_getattr_np(pthread_self(), &a) == 0 && pthread_attr_getstacksize(&a, &size) == 0);
    pthread_attr_destroy(&a);
    *(size_t *)arg = size;
    return NULL;
}

int main(void)
{
    pthread_t t[100];
    for (long i = 0; i < 100; i++)
        CHECK(pthread_create(&t[i], NULL, square, (void *)i) == 0);
    for (long i = 0; i < 100; i++) {
        void *r;
        CHECK(pthread_join(t[i], &r) == 0 && (long)r == i * i);
    }
    pthread_attr_t a;
    CHECK(pthread_attr_init(&a) == 0 && pthread_attr_setstacksize(&a, (size_t)3 << 20) == 0);
    size_t size = 0;
    CHECK(pthread_create(&t[0], &a, stack_of, &size) == 0 && pthread_join(t[0], NULL) == 0);
    CHECK(size >= ((size_t)3 << 20) - 65536); /* a cached stack may be larger */
    CHECK(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED) == 0);
    sem_init(&done, 0, 0);
    for (int i = 0; i < 50; i++)
        CHECK(pthread_create(&t[0], &a, detached, malloc(1000)) == 0);
    for (int i = 0; i < 50; i++)
        while (sem_wait(&done) != 0)
            ;
    void *mine = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t own;
    CHECK(pthread_attr_init(&own) == 0 && pthread_attr_setstack(&own, mine, 1 << 20) == 0);
    CHECK(pthread_create(&t[0], &own, square, (void *)9) == 0);
    void *r;
    CHECK(pthread_join(t[0], &r) == 0 && (long)r == 81);
    CHECK(pthread_attr_setstacksize(&own, 1) == EINVAL);
    CHECK(pthread_attr_setstacksize(&a, (size_t)1 << 60) == 0);
    CHECK(pthread_create(&t[0], &a, square, NULL) == EAGAIN); /* no room for the stack */
    puts("ok");
    return 0;
}
