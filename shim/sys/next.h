/* SPDX-License-Identifier: BSD-2-Clause
 * The next allocator in the chain (glibc's, or a preloaded jemalloc, mimalloc,
 * tcmalloc) and the libc's mapping calls. Resolved on first use, before any
 * constructor; all functions of one struct come from one allocator: where the
 * next one lacks a function (jemalloc has no pvalloc) it is made from those
 * that it has, never taken from another library. */
#ifndef HYBRID_SYS_NEXT_H
#define HYBRID_SYS_NEXT_H

#include <pthread.h>
#include <sys/types.h>

#include "base/types.h"

/* What stands behind the exported names: the hooks call through one pointer to
 * such a table (core/state.h), the next allocator is one of them. */
struct alloc_ops {
    void *(*malloc)(size_t n);
    void (*free)(void *p);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *p, size_t n);
    /* align: a power of two; errno ENOMEM on failure. */
    void *(*memalign)(size_t align, size_t n);
    size_t (*usable_size)(void *p);
};

/* The table of the next allocator; usable from the first call on. */
const struct alloc_ops *next_alloc(void);

/* The same, for code that runs only after the constructor: no test, no call. */
extern HY_HIDDEN struct alloc_ops hy_next;

/* The libc's own allocator (__libc_malloc and its kin), if the next one is another; else NULL. */
const struct alloc_ops *next_libc(void);

/* A sanitizer that is malloc, or valgrind as such: what it does not give, it misjudges (a block
 * that goes from one thread to another by our caches is a race to it). In the constructor. */
bool next_is_watched(void);

/* The mapping calls behind our hooks. */
struct map_ops {
    void *(*mmap)(void *addr, size_t len, int prot, int flags, int fd, off_t off);
    int (*munmap)(void *addr, size_t len);
    void *(*mremap)(void *old, size_t old_len, size_t new_len, int flags, ...);
    int (*mprotect)(void *addr, size_t len, int prot);
    int (*ioctl)(int fd, unsigned long request, ...);
};
const struct map_ops *next_map(void);

/* What pthread_atfork calls, of the object `dso`: its handlers go with it. Ours never does: NULL.
 * 0 or an errno value. */
int next_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);

/* atexit, which each object has of its own, asks for what the compiler's start files define. */
int next_at_exit(void (*fn)(void *unused));

typedef int (*next_pthread_create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                      void *);
next_pthread_create_fn next_pthread_create(void);

#endif
