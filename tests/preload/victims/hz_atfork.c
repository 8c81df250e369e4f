/* SPDX-License-Identifier: BSD-2-Clause
 * Handlers of fork that fork themselves, allocate, and free what another allocator may have given: registered
 * in a constructor, by main, and again once memory has long been placed. Threads
 * allocate and fork meanwhile. The order of the handlers is the program's. */
#include <stdbool.h>

#include "victim.h"

enum { ROUNDS = 30, BLOCKS = 64, DEEP = 2 };

static __thread int depth;
static __thread char order[64];
static __thread char *kept[3];
static bool nested[3]; /* in prepare, parent, child */
static void *held[BLOCKS];

static void churn(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        void *p = malloc((size_t)i * 997 + 1);
        CHECK(p != NULL);
        memset(p, i, (size_t)i * 997 + 1);
        free(p);
    }
}

static void note(char c)
{
    size_t n = strlen(order);
    if (depth == 0 && n + 1 < sizeof(order))
        order[n] = c;
}

static void fork_inside(void)
{
    if (depth >= DEEP - 1)
        return;
    depth++;
    pid_t pid = fork();
    CHECK(pid >= 0);
    churn();
    if (pid == 0)
        _exit(0);
    CHECK(reap(pid) == 0);
    depth--;
}

static void at(int when, int which)
{
    note((char)((when == 0 ? 'a' : when == 1 ? 'k' : 'u') + which));
    churn();
    if (depth == 0 && when == 0)
        kept[which] = malloc(5000);
    else if (depth == 0 && kept[which]) {
        free(kept[which]);
        kept[which] = NULL;
    }
    if (nested[when])
        fork_inside();
}

#define HANDLERS(n)                                                                                \
    static void prepare##n(void)                                                                   \
    {                                                                                              \
        at(0, n);                                                                                  \
    }                                                                                              \
    static void parent##n(void)                                                                    \
    {                                                                                              \
        at(1, n);                                                                                  \
    }                                                                                              \
    static void child##n(void)                                                                     \
    {                                                                                              \
        at(2, n);                                                                                  \
    }
HANDLERS(0)
HANDLERS(1)
HANDLERS(2)

__attribute__((constructor)) static void early(void)
{
    CHECK(pthread_atfork(prepare0, parent0, child0) == 0);
}

static void one_fork(bool tells)
{
    memset(order, 0, sizeof(order));
    pid_t pid = fork();
    CHECK(pid >= 0);
    churn();
    if (pid == 0) {
        if (tells) {
            printf("child: %s\n", order);
            fflush(stdout);
        }
        pid_t next = fork(); /* the child is whole: it may have children */
        if (next == 0)
            _exit(5);
        CHECK(reap(next) == 5);
        _exit(4);
    }
    CHECK(reap(pid) == 4);
    if (tells)
        printf("parent: %s\n", order);
    fflush(stdout);
}

static void *forker(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        one_fork(false);
        churn();
    }
    return NULL;
}

static void in_each_way(void)
{
    for (int way = 0; way < 5; way++) {
        for (int i = 0; i < 3; i++)
            nested[i] = way == i || way == 3;
        one_fork(true);
    }
    memset(nested, 0, sizeof(nested));
}

int main(void)
{
    pthread_t t;
    alarm(300);
    in_each_way();
    CHECK(pthread_atfork(prepare1, parent1, child1) == 0);
    in_each_way();
    for (int i = 0; i < BLOCKS; i++) /* more than the 4 MiB of a setting */
        CHECK((held[i] = calloc(1, 300000)) != NULL);
    usleep(100000);
    in_each_way();
    CHECK(pthread_atfork(prepare2, parent2, child2) == 0);
    in_each_way();
    nested[2] = true;
    CHECK(pthread_create(&t, NULL, forker, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        for (int n = 0; n < BLOCKS; n++)
            held[n] = realloc(held[n], 300000 + (size_t)(i % 3) * 100000);
        churn();
    }
    CHECK(pthread_join(t, NULL) == 0);
    puts("ok");
    return 0;
}
