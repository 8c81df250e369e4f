/* SPDX-License-Identifier: BSD-2-Clause
 * Calls that the kernel or the libc refuses: pointers to nothing, sizes and flags that are none. What
 * comes back, and errno, are the same whoever stands in between. */
#include "victim.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* What a compiler warns of is what is tried here. */
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Walloc-size-larger-than="

#define TELL(call)                                                                                 \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long r_ = (long)(call);                                                                    \
        printf("%d: %ld %d\n", __LINE__, r_, errno);                                               \
    } while (0)
/* Whatever the pointer. */
#define TELL_IF(call) TELL((call) != 0)

static char *const none[] = {NULL}, *const one[] = {(char *)"x", NULL};
static char *bad = (char *)8, *closed, *edge; /* no memory; none to be read; the end of some */

int capset(void *header, void *data);

static void by_number(void)
{
    TELL(syscall(SYS_clone3, bad, 88));
    TELL(syscall(SYS_clone3, closed, 64));
    TELL(syscall(SYS_clone3, edge - 32, 64));
    TELL(syscall(SYS_clone3, edge - 64, 88));
    TELL(syscall(SYS_clone3, NULL, 64));
    TELL(syscall(SYS_clone3, bad, 0));
    TELL(syscall(SYS_clone3, (void *)-1, 64));
    TELL(syscall(SYS_clone3, (void *)((uintptr_t)1 << 63), 64));
    TELL(syscall(SYS_clone3, bad, (size_t)1 << 40));
    TELL(syscall(SYS_clone, CLONE_SIGHAND, NULL, NULL, NULL, NULL));
    TELL(syscall(SYS_capset, bad, bad));
    TELL(syscall(SYS_setgroups, 5, bad));
    TELL(syscall(SYS_unshare, -1));
    TELL(syscall(SYS_seccomp, 1, 0, NULL));
    TELL(syscall(SYS_seccomp, 99, 0, bad));
    TELL(syscall(SYS_prctl, -1));
    TELL(syscall(-1));
    TELL(syscall(511));
    TELL(syscall(512));
    TELL(syscall((long)1 << 40));
}

static void rights(void)
{
    TELL(capset(NULL, NULL));
    TELL(capset(bad, closed));
    TELL(unshare(-1));
    TELL(setns(-1, 0));
    TELL(prctl(-1, 0, 0, 0, 0));
    TELL(prctl(PR_SET_NAME, bad));
    TELL(prctl(PR_GET_NAME, closed));
    TELL(prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0));
    TELL(prctl(PR_SET_SECCOMP, 2, NULL, 0, 0));
}

static void mappings(void)
{
    const int anon = MAP_PRIVATE | MAP_ANONYMOUS;
    TELL(mmap(NULL, 0, PROT_READ, anon, -1, 0));
    TELL(mmap((void *)1, 4096, PROT_READ, anon | MAP_FIXED, -1, 0));
    TELL(mmap(NULL, (size_t)-1, PROT_READ, anon, -1, 0));
    TELL(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0));
    TELL(mmap(NULL, 4096, PROT_READ, anon, -1, 1));
    TELL(mmap(NULL, 4096, PROT_READ, 0, -1, 0));
    TELL_IF(malloc((size_t)1 << 40));
    TELL_IF(calloc((size_t)1 << 10, (size_t)1 << 30));
    TELL_IF(realloc(malloc(1 << 20), (size_t)1 << 40)); /* left: it is refused */
    TELL_IF(aligned_alloc((size_t)1 << 40, 1)); /* the kernel promises no such run */
    TELL_IF(memalign((size_t)1 << 44, 4096));
    TELL(munmap(bad, 4096));
    TELL(munmap(NULL, 0));
    TELL(munmap((void *)4096, 4096));
    TELL(munmap((void *)-4096, 8192));
    TELL(munmap((void *)4096, (size_t)-1));
    TELL(mremap(bad, 1, 2, 0));
    TELL(mremap(NULL, 0, 0, 0));
    TELL(mremap((void *)4096, 4096, 8192, MREMAP_MAYMOVE));
    TELL(mremap(closed, 8192, 0, 0));
    TELL(mremap(closed, 8192, 8192, 99));
    TELL(mremap(closed, 0, 8192, MREMAP_MAYMOVE));
    TELL(mremap(closed, 8192, 4096, MREMAP_FIXED, NULL));
    TELL(mremap(closed, 8192, 4096, MREMAP_FIXED | MREMAP_MAYMOVE, closed));
    TELL(mremap(closed, (size_t)-1, 4096, MREMAP_MAYMOVE));
    TELL(mremap(closed, 4096, (size_t)-1, MREMAP_MAYMOVE));
    TELL(madvise(bad, 4096, MADV_DONTNEED));
    TELL(madvise((void *)4096, 4096, MADV_DONTNEED));
    TELL(ioctl(-1, 0));
    TELL(ioctl(1, 0xc018aa3f, bad)); /* UFFDIO_API and its kin, of what is no userfaultfd */
    TELL(ioctl(1, 0xc020aa00, NULL));
    TELL(ioctl(1, 0x8010aa01, bad));
}

static void loader_and_programs(void)
{
    pid_t pid;
    TELL_IF(dlopen(NULL, RTLD_NOW));
    TELL_IF(dlopen("", RTLD_NOW));
    TELL_IF(dlopen(NULL, RTLD_NOW | RTLD_DEEPBIND));
    TELL_IF(dlopen("libm.so.6", 0));
    TELL_IF(dlopen("libm.so.6", RTLD_DEEPBIND));
    TELL_IF(dlmopen(77, "libm.so.6", RTLD_NOW));
    TELL_IF(dlmopen(LM_ID_NEWLM, NULL, RTLD_NOW));
    TELL(execve(NULL, NULL, NULL));
    TELL(execve(bad, NULL, NULL));
    TELL(execve("/no", (char **)(void *)bad, NULL));
    TELL(execv("/no", NULL));
    TELL(execvp("", NULL));
    TELL(execvp("no-such-program", none));
    TELL(execveat(-1, "", NULL, NULL, 0));
    TELL(fexecve(-1, NULL, NULL));
    TELL(execlp("no-such-program", "a", (char *)NULL));
    TELL(posix_spawn(NULL, "/no", NULL, NULL, one, NULL));
    TELL(posix_spawnp(&pid, "no-such-program", NULL, NULL, one, NULL));
    TELL(system(NULL));
    TELL(popen("x", "q"));
    TELL(popen("x", ""));
    TELL(clone(NULL, NULL, 0, NULL));
    TELL(clone((int (*)(void *))(void *)puts, NULL, 0, NULL));
    TELL(clone(NULL, edge, 0, NULL));
}

static void threads_and_cpus(void)
{
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    TELL(pthread_attr_setstacksize(&a, (size_t)1 << 50));
    TELL(pthread_create(&t, &a, (void *(*)(void *))(void *)puts, NULL));
    TELL(sched_getaffinity(0, 0, (cpu_set_t *)(void *)bad));
    TELL(sched_getaffinity(0, 128, (cpu_set_t *)(void *)bad));
    TELL(sched_getaffinity(0, 128, (cpu_set_t *)(void *)closed));
    TELL(sched_getaffinity(-1, 128, (cpu_set_t *)(void *)closed));
    TELL(sched_setaffinity(0, 128, (cpu_set_t *)(void *)bad));
    TELL(sched_setaffinity(0, 0, NULL));
    TELL(sysconf(-1));
    TELL(sysconf(9999));
}

static void alignments(void)
{
    void *q = (void *)7;
    TELL(posix_memalign(&q, 0, 8));
    TELL(posix_memalign(&q, 4, 8));
    TELL(posix_memalign(&q, 24, 8));
    TELL((long)q);
    TELL_IF(aligned_alloc(0, 8));
    TELL_IF(aligned_alloc(3, 8));
    TELL(aligned_alloc(SIZE_MAX, 8));
    TELL(aligned_alloc(4096, SIZE_MAX));
    TELL_IF(memalign(0, 8));
    TELL(memalign(SIZE_MAX, 8));
    TELL(memalign(16, SIZE_MAX));
    TELL(memalign(SIZE_MAX / 2 + 1, 1));
    TELL(memalign(SIZE_MAX / 2 + 2, 1));
    TELL_IF(memalign(1 << 20, 0));
    TELL(valloc(SIZE_MAX));
    TELL(pvalloc(SIZE_MAX));
    TELL(pvalloc(SIZE_MAX - 4095));
    TELL_IF(valloc(0));
    TELL_IF(pvalloc(0));
}

static void sizes(void)
{
    TELL(malloc(SIZE_MAX));
    TELL(malloc(PTRDIFF_MAX));
    TELL(malloc((size_t)PTRDIFF_MAX + 1));
    TELL(malloc((size_t)1 << 47));
    TELL(calloc(SIZE_MAX, 2));
    TELL(calloc((size_t)1 << 33, (size_t)1 << 33));
    TELL_IF(calloc(0, SIZE_MAX));
    TELL_IF(calloc(SIZE_MAX, 0));
    TELL(realloc(NULL, SIZE_MAX));
    TELL(realloc(malloc(9), SIZE_MAX));
    TELL(realloc(malloc(9), (size_t)1 << 47));
    TELL(realloc(malloc(9), 0));
    TELL_IF(realloc(NULL, 0));
    TELL(reallocarray(NULL, (size_t)1 << 33, (size_t)1 << 33));
    TELL(reallocarray(malloc(1), (size_t)OPAQUE(0), 5));
    TELL(malloc_usable_size(NULL));
    TELL(mallopt(9999, 1));
    TELL(malloc_info(1, stdout));
}

int main(void)
{
    closed = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    edge = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(closed != MAP_FAILED && edge != MAP_FAILED && mprotect(edge + 4096, 4096, PROT_NONE) == 0);
    edge += 4096;
    by_number();
    rights();
    mappings();
    loader_and_programs();
    threads_and_cpus();
    alignments();
    sizes();
    puts("ok");
    return 0;
}
