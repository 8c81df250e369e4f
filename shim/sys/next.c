/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/next.h"

#include <errno.h>
#include <string.h>

#include "sys/dl.h"
#include "sys/env.h"

/* A first call may come from the loader itself, before any constructor, and
 * from several threads: resolution is idempotent, the flag is set last. */
struct alloc_ops hy_next;
static bool next_resolved;

/* Used when the next allocator does not define the aligned family (a minimal
 * interposer): refuse rather than mix allocators. */
static void *no_memalign(size_t align, size_t n)
{
    if (align <= 16)
        return hy_next.malloc(n);
    errno = ENOMEM;
    return NULL;
}

static int (*next_posix_memalign)(void **, size_t, size_t);

static void *memalign_by_posix(size_t align, size_t n)
{
    void *p = NULL;
    int e = next_posix_memalign(&p, HY_MAX(align, sizeof(void *)), n);
    if (e) {
        errno = e;
        return NULL;
    }
    return p;
}

static size_t no_usable_size(void *p)
{
    (void)p;
    return 0;
}

/* A symbol counts only if it lives in the same object as malloc. */
static void *same_object(const char *name, uintptr_t base)
{
    void *sym = dl_next(name);
    return sym && dl_object_base(sym) == base ? sym : NULL;
}

static HY_COLD const struct alloc_ops *resolve_next(void)
{
    struct alloc_ops n = {0};
    /* malloc first: it is always found, and what dlsym allocates for a name
     * that is not found is then served. */
    n.malloc = (void *(*)(size_t))dl_next("malloc");
    n.free = (void (*)(void *))dl_next("free");
    n.calloc = (void *(*)(size_t, size_t))dl_next("calloc");
    n.realloc = (void *(*)(void *, size_t))dl_next("realloc");
    n.memalign = no_memalign;
    n.usable_size = no_usable_size;
    if (!next_resolved) {
        hy_next = n;
        __atomic_store_n(&next_resolved, true, __ATOMIC_RELEASE);
    }
    uintptr_t base = dl_object_base((void *)n.malloc);
    void *sym = same_object("memalign", base);
    if (sym) {
        n.memalign = (void *(*)(size_t, size_t))sym;
    } else if ((sym = same_object("posix_memalign", base)) != NULL) {
        next_posix_memalign = (int (*)(void **, size_t, size_t))sym;
        n.memalign = memalign_by_posix;
    } else if ((sym = same_object("aligned_alloc", base)) != NULL) {
        n.memalign = (void *(*)(size_t, size_t))sym;
    }
    if ((sym = same_object("malloc_usable_size", base)) != NULL)
        n.usable_size = (size_t(*)(void *))sym;
    __atomic_store_n(&hy_next.usable_size, n.usable_size, __ATOMIC_RELAXED);
    __atomic_store_n(&hy_next.memalign, n.memalign, __ATOMIC_RELEASE);
    return &hy_next;
}

const struct alloc_ops *next_alloc(void)
{
    static bool names_found;
    if (HY_LIKELY(__atomic_load_n(&names_found, __ATOMIC_ACQUIRE)))
        return &hy_next;
    /* Inside our own resolution (dlsym allocating): what is there serves. */
    static __thread bool resolving __attribute__((tls_model("initial-exec")));
    if (resolving && __atomic_load_n(&next_resolved, __ATOMIC_ACQUIRE))
        return &hy_next;
    resolving = true;
    resolve_next();
    resolving = false;
    __atomic_store_n(&names_found, true, __ATOMIC_RELEASE);
    return &hy_next;
}

/* The libc's own family, where the next allocator is another one; that one's blocks are none of
 * these. */
static struct alloc_ops libc_family;

static bool find_libc_family(void)
{
    struct alloc_ops n = {
        .malloc = (void *(*)(size_t))dl_next("__libc_malloc"),
        .free = (void (*)(void *))dl_next("__libc_free"),
        .calloc = (void *(*)(size_t, size_t))dl_next("__libc_calloc"),
        .realloc = (void *(*)(void *, size_t))dl_next("__libc_realloc"),
        .memalign = (void *(*)(size_t, size_t))dl_next("__libc_memalign"),
        .usable_size = no_usable_size,
    };
    if (!n.malloc || !n.free || !n.calloc || !n.realloc || !n.memalign)
        return false; /* no glibc */
    libc_family = n;
    return dl_object_base((void *)n.malloc) != dl_object_base((void *)next_alloc()->malloc);
}

const struct alloc_ops *next_libc(void)
{
    enum { UNKNOWN, NONE, OTHER };
    static uint8_t libc_known;
    uint8_t k = __atomic_load_n(&libc_known, __ATOMIC_ACQUIRE);
    if (HY_UNLIKELY(k == UNKNOWN)) {
        k = find_libc_family() ? OTHER : NONE;
        __atomic_store_n(&libc_known, k, __ATOMIC_RELEASE);
    }
    return k == OTHER ? &libc_family : NULL;
}

/* Memcheck and the other tools of valgrind that put themselves in the place of malloc, by a library
 * beside the one that all of its tools have. Of mistakes in our blocks they see none. */
static void note_valgrind(const char *name, size_t name_len, const char *preload, void *ret_is)
{
    static const char tool[] = "vgpreload_", none[] = "core";
    (void)name;
    if (name_len != sizeof("LD_PRELOAD") - 1)
        return;
    while ((preload = strstr(preload, tool)) != NULL) {
        preload += sizeof(tool) - 1;
        *(bool *)ret_is |= strncmp(preload, none, sizeof(none) - 1) != 0;
    }
}

static bool valgrind_watches(void)
{
    bool is = false;
    env_each("LD_PRELOAD", note_valgrind, &is); /* not getenv, which would have to be looked up */
    return is && dl_global("_vgr10010ZU_libcZdsoZa_malloc");
}

/* Most programs have the libc's, which is known without a look-up. */
bool next_is_watched(void)
{
    if (valgrind_watches())
        return true;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return false; /* this library is what is being watched */
#else
    if (dl_object_base((void *)hy_next.malloc) == dl_object_base((void *)pthread_self))
        return false;
    return dl_global("__sanitizer_get_heap_size") != NULL; /* not UBSan's */
#endif
}

const struct map_ops *next_map(void)
{
    static struct map_ops ops;
    static bool names_found;
    if (HY_UNLIKELY(!__atomic_load_n(&names_found, __ATOMIC_ACQUIRE))) {
        /* Idempotent: threads that come here together store the same. */
        ops.munmap = (int (*)(void *, size_t))dl_next("munmap");
        ops.mremap = (void *(*)(void *, size_t, size_t, int, ...))dl_next("mremap");
        ops.mprotect = (int (*)(void *, size_t, int))dl_next("mprotect");
        ops.ioctl = (int (*)(int, unsigned long, ...))dl_next("ioctl");
        ops.mmap = (void *(*)(void *, size_t, int, int, int, off_t))dl_next("mmap");
        __atomic_store_n(&names_found, true, __ATOMIC_RELEASE);
    }
    return &ops;
}

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *dso);

int next_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso)
{
    DL_NEXT(__register_atfork);
    return HY_LIKELY(fn) ? fn(prepare, parent, child, dso) : ENOSYS;
}

extern int __cxa_atexit(void (*fn)(void *arg), void *arg, void *dso);

int next_at_exit(void (*fn)(void *unused))
{
    return __cxa_atexit(fn, NULL, NULL);
}

next_pthread_create_fn next_pthread_create(void)
{
    DL_NEXT(pthread_create);
    return fn;
}
