/* SPDX-License-Identifier: BSD-2-Clause
 * RTLD_DEEPBIND, as extensions of php are opened: the library's allocator is the program's all the
 * same. And a library that opens its neighbour by a bare name (RUNPATH $ORIGIN) finds it. */
#include "victim.h"

#include <dlfcn.h>

static void *(*deep_malloc)(size_t);
static void *(*deep_realloc)(void *, size_t);
static void (*deep_free)(void *);

static void functions_of(void *h)
{
    *(void **)&deep_malloc = dlsym(h, "deep_malloc");
    *(void **)&deep_realloc = dlsym(h, "deep_realloc");
    *(void **)&deep_free = dlsym(h, "deep_free");
    CHECK(deep_malloc && deep_realloc && deep_free);
}

static void exchange(void)
{
    uint64_t s = 11;
    for (int i = 0; i < 2000; i++) {
        size_t n = random_size(&s) + 8;
        char *p = malloc(n);
        fill(p, n, n);
        p = deep_realloc(p, 2 * n);
        CHECK(p && holds(p, n & ~(size_t)7, n));
        deep_free(p);
        p = deep_malloc(n);
        fill(p, n, n);
        p = realloc(p, 2 * n);
        CHECK(p && holds(p, n & ~(size_t)7, n));
        free(p);
        deep_free(malloc(n));
        free(deep_malloc(n));
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    void *h = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
    if (!h)
        dprintf(1, "%s\n", dlerror());
    CHECK(h);
    functions_of(h);
    exchange();

    const char *name = strrchr(argv[1], '/') + 1;
    CHECK(!dlopen("libhy_no_neighbour.so", RTLD_NOW) && dlerror());
    void *other = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL); /* the same code under another name */
    CHECK(other);
    void *(*hop)(const char *, int);
    *(void **)&hop = dlsym(other, "hop");
    CHECK(dlclose(h) == 0);
    CHECK(!dlopen(name, RTLD_NOW) && dlerror()); /* this program has no RUNPATH */
    h = hop(name, RTLD_LAZY | RTLD_DEEPBIND);
    CHECK(h);
    functions_of(h);
    exchange();
    CHECK(!hop("libhy_no_neighbour.so", RTLD_NOW) && dlerror());

    void *new = dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_DEEPBIND);
    if (new) { /* a libc of its own, and the neighbour beside it */
        Lmid_t there = -2, here = -2;
        *(void **)&hop = dlsym(new, "hop");
        CHECK((h = hop(name, RTLD_NOW)) != NULL);
        CHECK(dlinfo(new, RTLD_DI_LMID, &here) == 0 && dlinfo(h, RTLD_DI_LMID, &there) == 0);
        CHECK(here == there && here != LM_ID_BASE);
        functions_of(h);
        deep_free(deep_malloc(100000));
    }
    h = dlmopen(LM_ID_BASE, argv[1], RTLD_NOW | RTLD_DEEPBIND);
    CHECK(h);
    functions_of(h);
    exchange();
    puts("ok");
    return 0;
}
