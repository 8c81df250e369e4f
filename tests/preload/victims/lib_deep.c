/* SPDX-License-Identifier: BSD-2-Clause
 * hz_deepbind opens it: by a path, or by its bare name, which only lib_hop's RUNPATH finds. */
#include <dlfcn.h>
#include <stdlib.h>

void *deep_malloc(size_t n)
{
    return malloc(n);
}

void *deep_realloc(void *p, size_t n)
{
    return realloc(p, n);
}

void deep_free(void *p)
{
    free(p);
}

void *hop(const char *name, int flags)
{
    void *volatile h = dlopen(name, flags); /* no last call: the return address is this library's */
    return h;
}
