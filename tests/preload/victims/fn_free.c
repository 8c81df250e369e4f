/* SPDX-License-Identifier: BSD-2-Clause
 * free: NULL does nothing, errno stays, blocks of every source are taken;
 * free_sized, free_aligned_sized and cfree where the process has them. */
#include "victim.h"

#include <dlfcn.h>
#include <malloc.h>

static void *block(int how, size_t n)
{
    void *p = NULL;
    switch (how) {
    case 0:
        return malloc(n);
    case 1:
        return calloc(1, n);
    case 2:
        return realloc(NULL, n);
    case 3:
        return posix_memalign(&p, 256, n) ? NULL : p;
    case 4:
        return memalign(64, n);
    case 5:
        return valloc(n);
    case 6:
        return strdup("a string of libc's");
    default:
        return aligned_alloc(4096, (n + 4095) & ~(size_t)4095);
    }
}

int main(void)
{
    union {
        void *sym;
        void (*plain)(void *);
        void (*sized)(void *, size_t);
        void (*aligned)(void *, size_t, size_t);
    } cf = {dlsym(RTLD_DEFAULT, "cfree")}, fs = {dlsym(RTLD_DEFAULT, "free_sized")},
      fas = {dlsym(RTLD_DEFAULT, "free_aligned_sized")};
    const size_t sizes[] = {0, 1, 100, 5000, 40000, 300000, 5000000, 40000000};
    for (int round = 0; round < 20; round++)
        for (unsigned i = 0; i < 8; i++)
            for (int how = 0; how < 8; how++) {
                void *p = block(how, sizes[i]);
                CHECK(p);
                errno = 4711;
                if (round % 4 == 1 && cf.sym)
                    cf.plain(p);
                else if (round % 4 == 2 && fs.sym && how < 3)
                    fs.sized(p, sizes[i]);
                else if (round % 4 == 3 && fas.sym && how == 7)
                    fas.aligned(p, 4096, (sizes[i] + 4095) & ~(size_t)4095);
                else
                    free(p);
                CHECK(errno == 4711);
            }
    errno = 4711;
    void *volatile null = NULL;
    free(null);
    if (cf.sym)
        cf.plain(NULL);
    if (fs.sym)
        fs.sized(NULL, 0);
    if (fas.sym)
        fas.aligned(NULL, 16, 0);
    CHECK(errno == 4711);
    if (getenv("LD_PRELOAD") && strstr(getenv("LD_PRELOAD"), "hybrid"))
        CHECK(fs.sym && fas.sym && cf.sym);
    puts("ok");
    return 0;
}
