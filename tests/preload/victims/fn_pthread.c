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

static pthread_key_t key;
static int destroyed, cleaned;

static void destroy(void *p)
{
    free(p);
    destroyed++;
}

static void clean(void *p)
{
    free(p);
    cleaned++;
}

/* Named, with a value of its own, until it is cancelled. */
static void *wait_for_end(void *arg)
{
    char name[16];
    (void)arg;
    CHECK(pthread_setname_np(pthread_self(), "victim-thread-1") == 0);
    CHECK(pthread_getname_np(pthread_self(), name, sizeof(name)) == 0);
    CHECK(strcmp(name, "victim-thread-1") == 0);
    CHECK(pthread_setspecific(key, malloc(100)) == 0);
    pthread_cleanup_push(clean, malloc(200));
    sem_post(&done);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return NULL;
}

static void *leave(void *arg)
{
    CHECK(pthread_setspecific(key, malloc(100)) == 0);
    pthread_exit(arg);
}

static void endings(void)
{
    pthread_t t;
    void *r;
    CHECK(pthread_key_create(&key, destroy) == 0);
    CHECK(pthread_create(&t, NULL, wait_for_end, NULL) == 0);
    while (sem_wait(&done) != 0)
        ;
    CHECK(pthread_cancel(t) == 0 && pthread_join(t, &r) == 0 && r == PTHREAD_CANCELED);
    CHECK(destroyed == 1 && cleaned == 1);
    CHECK(pthread_create(&t, NULL, leave, &key) == 0 && pthread_join(t, &r) == 0 && r == &key);
    CHECK(destroyed == 2);
}

/* Attributes that the kernel refuses: the error comes from pthread_create, no thread begins. */
static void refused(void)
{
    pthread_attr_t a;
    pthread_t t;
    cpu_set_t none;
    CPU_ZERO(&none);
    CPU_SET(CPU_SETSIZE - 1, &none);
    CHECK(pthread_attr_init(&a) == 0);
    CHECK(pthread_attr_setaffinity_np(&a, sizeof(none), &none) == 0);
    CHECK(pthread_create(&t, &a, square, NULL) == EINVAL);
    pthread_attr_destroy(&a);
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
    endings();
    refused();
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
