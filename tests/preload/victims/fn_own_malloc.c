/* SPDX-License-Identifier: BSD-2-Clause
 * A program with an allocator of its own linked in, which has no reallocarray, valloc, pvalloc,
 * memalign and aligned_alloc (as jemalloc and others): what it gets from these it gives to its own
 * free. With "all" also from those that the libc would serve with blocks of its own. */
#include "victim.h"

#include <malloc.h>

#define ARENA ((size_t)256 << 20)
#define MAGIC UINT64_C(0xA110CA7ED0B10C5)

struct head {
    uint64_t magic;
    size_t size;
};
static char *arena;
static size_t used;
static unsigned long freed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *take(size_t align, size_t n)
{
    pthread_mutex_lock(&lock);
    if (!arena)
        arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t at = (used + sizeof(struct head) + align - 1) & ~(align - 1);
    char *p = at + n <= ARENA ? arena + at : NULL;
    if (p) {
        ((struct head *)p)[-1] = (struct head){MAGIC, n};
        used = at + n;
    } else {
        errno = ENOMEM;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static struct head *head_of(void *p)
{
    if (!arena || (char *)p < arena || (char *)p >= arena + ARENA || ((struct head *)p)[-1].magic != MAGIC) {
        (void)!write(1, "a block of another allocator\n", 29);
        _exit(98);
    }
    return (struct head *)p - 1;
}

void *malloc(size_t n)
{
    return take(16, n);
}

void free(void *p)
{
    if (p) {
        head_of(p)->magic = 0;
        freed++;
    }
}

void *calloc(size_t count, size_t size)
{
    return count && size > SIZE_MAX / count ? NULL : take(16, count * size); /* fresh, so zero */
}

void *realloc(void *p, size_t n)
{
    void *q = take(16, n);
    if (p && q) {
        size_t old = head_of(p)->size;
        memcpy(q, p, old < n ? old : n);
        free(p);
    }
    return q;
}

int posix_memalign(void **ret, size_t align, size_t n)
{
    void *p = take(align < 16 ? 16 : align, n);
    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

int main(int argc, char **argv)
{
    char *p = NULL;
    for (size_t i = 1; i < 2000; i++) {
        p = OPAQUE(&reallocarray)(p, i, 40);
        CHECK(p && (i == 1 || holds(p, (i - 1) * 40, 3)));
        fill(p, i * 40, 3);
    }
    free(p);
    p = OPAQUE(&reallocarray)(NULL, 10, 100);
    free(p);
    CHECK(!OPAQUE(&reallocarray)(NULL, OPAQUE(SIZE_MAX / 2), 4) && errno == ENOMEM);
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        for (size_t n = 1; n < 100000; n = n * 3 + 1) {
            void *(*const one[])(size_t) = {valloc, pvalloc};
            void *(*const two[])(size_t, size_t) = {memalign, aligned_alloc};
            for (int i = 0; i < 2; i++) {
                p = OPAQUE(one[i])(n);
                CHECK(p && (uintptr_t)p % 4096 == 0);
                fill(p, n, n);
                free(p);
                p = OPAQUE(two[i])(256, n);
                CHECK(p && (uintptr_t)p % 256 == 0);
                free(p);
            }
        }
    CHECK(freed > 1999);
    (void)!write(1, "ok\n", 3);
    return 0;
}
