/* SPDX-License-Identifier: BSD-2-Clause
 * dlopen and dlclose of a plugin that allocates in constructors: in a loop, then
 * from four threads while others cross the size from which the library steers. */
#include "victim.h"

#include <dlfcn.h>

static const char *plugin;
static volatile int stop;

static void once(int i)
{
    void *h = dlopen(plugin, i % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL);
    if (!h)
        dprintf(1, "%s\n", dlerror());
    CHECK(h);
    union {
        void *sym;
        char *(*make)(unsigned long);
        void (*done)(void);
        int (*catching)(int);
    } f = {dlsym(h, "plugin_make")};
    CHECK(f.sym);
    char *p = f.make((unsigned long)i * 97 + 1);
    f.sym = dlsym(h, "plugin_catch");
    CHECK(f.sym && f.catching(i % 20) == 1001);
    CHECK(!dlsym(h, "plugin_has_no_such_symbol") && dlerror());
    f.sym = dlsym(h, "plugin_done");
    f.done();
    CHECK(dlclose(h) == 0);
    CHECK(p[0] == 'm'); /* outlives the plugin */
    free(p);
    CHECK(!dlopen("./no-such-plugin.so", RTLD_NOW) && dlerror());
}

static void *loader(void *arg)
{
    for (int i = 0; i < 60; i++)
        once((int)(uintptr_t)arg + i);
    return NULL;
}

static void *grower(void *arg)
{
    (void)arg;
    void *kept[2000];
    for (int i = 0; i < 2000; i++) {
        kept[i] = malloc(20000);
        memset(kept[i], i, 20000);
        if (i % 100 == 0)
            nap_us(500);
    }
    for (int i = 0; i < 2000; i++) {
        CHECK(*(char *)kept[i] == (char)i);
        free(kept[i]);
    }
    while (!stop)
        free(malloc(300000));
    return NULL;
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    plugin = argv[1];
    pthread_t g[2], l[4];
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&g[i], NULL, grower, NULL) == 0);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK(pthread_create(&l[i], NULL, loader, (void *)i) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(l[i], NULL) == 0);
    stop = 1;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(g[i], NULL) == 0);
    size_t at = 0;
    for (int i = 0; i < 300; i++) {
        once(i);
        if (i == 50)
            at = statm(2);
    }
    CHECK(statm(2) < at + (8 << 20));
    void *h = dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW); /* a second libc with a heap of its own */
    if (h) {
        union {
            void *sym;
            int (*catching)(int);
        } f = {dlsym(h, "plugin_catch")};
        CHECK(f.sym && f.catching(3) == 1001);
    }
    puts("ok");
    return 0;
}
