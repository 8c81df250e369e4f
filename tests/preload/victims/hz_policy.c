/* SPDX-License-Identifier: BSD-2-Clause
 * A program that chooses NUMA policies itself finds them as it set them. */
#include "victim.h"

#include <sys/syscall.h>

enum { DEFAULT, PREFERRED, BIND };

static int mode_of(void *p)
{
    int mode = -1;
    unsigned long mask[16] = {0};
    long r = p ? syscall(SYS_get_mempolicy, &mode, mask, 1024ul, p, 2ul) : syscall(SYS_get_mempolicy, &mode, mask, 1024ul, NULL, 0ul);
    return r == 0 ? mode : -errno;
}

static void *thread(void *arg)
{
    for (int i = 0; i < 2000; i++)
        free(malloc((size_t)i * 50));
    *(int *)arg = mode_of(NULL);
    return NULL;
}

int main(void)
{
    unsigned long node0 = 1;
    if (mode_of(NULL) == -ENOSYS) {
        puts("this kernel has no NUMA policies");
        return 0;
    }
    char *m = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(m != MAP_FAILED);
    long r = syscall(SYS_mbind, m, 8ul << 20, BIND, &node0, 64ul, 0ul);
    printf("mbind %ld, mode %d\n", r, mode_of(m));
    memset(m, 1, 8 << 20);
    r = syscall(SYS_set_mempolicy, BIND, &node0, 64ul);
    printf("set %ld, mode %d\n", r, mode_of(NULL));
    char *p = malloc(30 << 20), *q = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p && q != MAP_FAILED);
    memset(p, 1, 30 << 20);
    memset(q, 1, 8 << 20);
    int in_thread = -1;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, thread, &in_thread) == 0 && pthread_join(t, NULL) == 0);
    printf("after: process %d, thread %d, mapping %d, new mapping %d\n", mode_of(NULL), in_thread, mode_of(m), mode_of(q));
    free(p);
    r = syscall(SYS_set_mempolicy, DEFAULT, NULL, 0ul);
    printf("default %ld, mode %d\n", r, mode_of(NULL));
    return 0;
}
