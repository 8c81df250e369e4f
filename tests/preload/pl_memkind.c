/* SPDX-License-Identifier: BSD-2-Clause
 * In memkind's place: once `slow` is set, each segment takes its time, and it does not stand being
 * ended in the middle of that, as the real one does not. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

extern int slow, inside;

struct kind {
    char *base;
    size_t bytes;
};

int memkind_create_fixed(void *base, size_t bytes, struct kind **ret);
int memkind_posix_memalign(struct kind *kind, void **ret, size_t align, size_t bytes);
void memkind_free(struct kind *kind, void *p);

int slow, inside; /* exit_fill.c looks them up */

int memkind_create_fixed(void *base, size_t bytes, struct kind **ret)
{
    static struct kind kinds[64];
    static unsigned n;
    if (n == sizeof(kinds) / sizeof(kinds[0]))
        return 1;
    __atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&slow, __ATOMIC_SEQ_CST))
        (void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    kinds[n] = (struct kind){base, bytes};
    *ret = &kinds[n++];
    __atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
    return 0;
}

int memkind_posix_memalign(struct kind *kind, void **ret, size_t align, size_t bytes)
{
    char *at = (char *)(((uintptr_t)kind->base + align - 1) / align * align);
    if ((size_t)(at - kind->base) > kind->bytes || bytes > kind->bytes - (size_t)(at - kind->base))
        return 1;
    *ret = at;
    return 0;
}

void memkind_free(struct kind *kind, void *p)
{
    (void)kind;
    (void)p;
}

__attribute__((destructor)) static void end(void)
{
    static const char said[] = "memkind was ended in the middle of a fill\n";
    if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) && write(2, said, sizeof(said) - 1) > 0)
        _exit(3);
}
