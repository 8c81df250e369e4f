/* SPDX-License-Identifier: BSD-2-Clause
 * Little address space (RLIMIT_AS): malloc says NULL and ENOMEM, the program
 * frees and goes on. "inherit" sets the limit before exec, so that the library
 * itself starts under it; "one": only one large block at a time has room; "fill": what many blocks
 * leave serves a large one; else the limit in KiB, 400 MiB by itself. */
#include "victim.h"

#include <sys/resource.h>

static void limit(size_t bytes)
{
    struct rlimit r = {bytes, bytes};
    CHECK(setrlimit(RLIMIT_AS, &r) == 0);
}

static void exhaust(size_t block)
{
    struct chain {
        struct chain *next;
        size_t seed;
    } *head = NULL, *c;
    size_t n = 0;
    errno = 0;
    while ((c = malloc(block)) != NULL) {
        CHECK(n * block < (size_t)1 << 30); /* twice the limit and more */
        c->next = head;
        c->seed = n++;
        if (block > 64)
            ((char *)c)[block - 1] = (char)n;
        head = c;
    }
    CHECK(!c && errno == ENOMEM);
    CHECK(n * block > (size_t)8 << 20); /* something could be had */
    void *p = (void *)0x55;
    CHECK(posix_memalign(&p, 4096, (size_t)256 << 20) == ENOMEM && p == (void *)0x55);
    errno = 0;
    CHECK(calloc(1, (size_t)512 << 20) == NULL && errno == ENOMEM);
    char *last = (char *)head;
    if (block > 64)
        CHECK(realloc(last, (size_t)512 << 20) == NULL && last[block - 1] == (char)n);
    size_t freed = 0;
    while (head) {
        CHECK(head->seed == n - 1 - freed);
        c = head->next;
        free(head);
        head = c;
        freed++;
    }
    CHECK(freed == n);
    for (int i = 0; i < 1000; i++) { /* and life goes on */
        char *q = malloc((size_t)i * 50 + 1);
        CHECK(q);
        q[i * 50] = 1;
        free(q);
    }
}

static void *exhaust_in_thread(void *arg)
{
    exhaust(*(size_t *)arg);
    return NULL;
}

/* Somewhat larger each time, then smaller: what was freed before must make room. */
static int one_at_a_time(void)
{
    limit((size_t)1 << 30);
    for (int i = 0; i < 16; i++) {
        size_t n = (size_t)(600 + 8 * (i < 8 ? i : 15 - i)) << 20;
        char *p = malloc(n);
        CHECK(p);
        p[0] = p[n - 1] = 1;
        free(p);
    }
    puts("ok");
    return 0;
}

/* What lies free on either tier, or ready for it, is no use where nobody can have its addresses. */
static int fill_and_free(void)
{
    static char *block[256];
    limit((size_t)700 << 20);
    for (int round = 0; round < 3; round++) {
        int n = 0;
        while (n < 256 && (block[n] = malloc((size_t)3 << 20)) != NULL)
            fill(block[n], 100, (uint64_t)n), n++;
        CHECK(n > 140); /* they were 130 */
        for (int i = 0; i < n; i += 2)
            free(block[i]);
        for (int i = 0; i < n; i += 2)
            CHECK((block[i] = calloc(1, 300000)) && all_zero(block[i], 300000));
        for (int i = 0; i < n; i++) {
            CHECK(i % 2 == 0 || holds(block[i], 100, (uint64_t)i));
            free(block[i]);
        }
        char *p = calloc(1, (size_t)300 << 20);
        CHECK(p && all_zero(p, (size_t)8 << 20));
        free(p);
        pid_t child = fork();
        if (child == 0)
            _exit((p = malloc((size_t)200 << 20)) ? p[1 << 20] = 7 : 1);
        CHECK(reap(child) == 7);
    }
    puts("ok");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "fill") == 0)
        return fill_and_free();
    if (argc > 1 && strcmp(argv[1], "one") == 0)
        return one_at_a_time();
    if (argc > 1 && strcmp(argv[1], "inherit") == 0) {
        limit((size_t)256 << 20);
        execl("/proc/self/exe", argv[0], "limited", (char *)NULL);
        return 98;
    }
    if (argc == 1 || strcmp(argv[1], "limited") != 0) {
        free(malloc((size_t)20 << 20)); /* the library may have begun to steer */
        limit(argc == 1 ? (size_t)400 << 20 : (size_t)atol(argv[1]) << 10);
    }
    const size_t sizes[] = {3000, 100000, 1500000};
    for (int i = 0; i < 3; i++)
        exhaust(sizes[i]);
    /* What the heaps took of the address space they keep: for the 8 MiB of a stack by default there
     * may be no room any more (docs/DESIGN.md). */
    pthread_attr_t small;
    pthread_t t;
    size_t n = 30000;
    CHECK(pthread_attr_init(&small) == 0 &&
          pthread_attr_setstacksize(&small, (size_t)256 << 10) == 0);
    CHECK(pthread_create(&t, &small, exhaust_in_thread, &n) == 0 && pthread_join(t, NULL) == 0);
    errno = 0;
    CHECK(mmap(NULL, (size_t)4 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
              MAP_FAILED &&
          errno == ENOMEM);
    puts("ok");
    return 0;
}
