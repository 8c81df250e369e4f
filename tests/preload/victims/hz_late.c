/* SPDX-License-Identifier: BSD-2-Clause
 * Allocations before main and after it: constructors of a linked library (which
 * run before or after ours as the loader likes), atexit, destructors, TLS. The
 * stream that main leaves unflushed lives in blocks of ours. */
#include "victim.h"

char *early_block(void);
void early_note(void *p);

static char *kept;
static void *made_at_exit[50];

static void at_exit(void)
{
    for (int i = 0; i < 50; i++) {
        made_at_exit[i] = malloc((size_t)i * 5000 + 1);
        memset(made_at_exit[i], i, (size_t)i * 5000 + 1);
    }
    CHECK(holds(kept, 100000, 5));
    free(kept);
    early_note(malloc(70000)); /* freed by the library's destructor, after ours */
    printf("at exit\n");
}

__attribute__((constructor)) static void before_main(void)
{
    kept = malloc(100000);
    fill(kept, 100000, 5);
}

__attribute__((destructor)) static void after_main(void)
{
    for (int i = 0; i < 50; i++) {
        CHECK(*(char *)made_at_exit[i] == (char)i);
        free(made_at_exit[i]);
    }
    printf("destructor\n");
}

int main(void)
{
    char *e = early_block();
    CHECK(holds(e, 3000, 1));
    e = realloc(e, 300000);
    CHECK(holds(e, 3000, 1));
    free(e);
    atexit(at_exit);
    for (int i = 0; i < 20000; i++)
        free(malloc((size_t)i));
    printf("main\n");
    return 17;
}
