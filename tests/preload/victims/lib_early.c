/* SPDX-License-Identifier: BSD-2-Clause
 * A library that allocates and starts a thread in its constructor and frees in
 * its destructor, linked to a victim or preloaded before the library under test. */
#include "victim.h"

char *early_block(void);
void early_note(void *p);

static char *block;
static void *late[8];
static int n_late;
static char *held;

static void *thread(void *arg)
{
    (void)arg;
    char *p = calloc(1, 50000);
    fill(p, 50000, 2);
    return p;
}

__attribute__((constructor(101))) static void start(void)
{
    block = malloc(3000);
    fill(block, 3000, 1);
    held = strdup("from a constructor");
    pthread_t t;
    void *p = NULL;
    if (pthread_create(&t, NULL, thread, NULL) == 0) {
        pthread_join(t, &p);
        CHECK(holds(p, 50000, 2));
        free(p);
    }
}

__attribute__((destructor(101))) static void end(void)
{
    for (int i = 0; i < n_late; i++)
        free(late[i]);
    CHECK(strcmp(held, "from a constructor") == 0);
    free(held);
    void *p = malloc(1000), *q = calloc(100, 1000);
    CHECK(p && q && all_zero(q, 100000));
    p = realloc(p, 200000);
    CHECK(p);
    free(p);
    free(q);
    q = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(q != MAP_FAILED);
    memset(q, 1, 4 << 20);
    munmap(q, 4 << 20);
}

char *early_block(void)
{
    return block;
}

void early_note(void *p)
{
    late[n_late++] = p;
}
