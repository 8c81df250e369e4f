/* SPDX-License-Identifier: BSD-2-Clause
 * A program that is started under a filter which kills whoever makes other calls than the loader,
 * an allocator and stdio: no thread of ours, no message, no report may come of it. "threads" are
 * let by a second filter: then ours is begun after the program's own. */
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LET(n)                                                                                     \
    BPF_JUMP(BPF_JMP + BPF_JEQ + BPF_K, SYS_##n, 0, 1), BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_ALLOW)
#define NUMBER BPF_STMT(BPF_LD + BPF_W + BPF_ABS, offsetof(struct seccomp_data, nr))
#define KILL   BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter few[] = {
    NUMBER,
    LET(execve),
    LET(brk),
    LET(openat),
    LET(read),
    LET(pread64),
    LET(close),
    LET(fstat),
    LET(newfstatat),
    LET(mmap),
    LET(mprotect),
    LET(munmap),
    LET(madvise),
    LET(mremap),
    LET(futex),
#ifdef SYS_arch_prctl
    LET(arch_prctl),
    LET(access),
#endif
    LET(faccessat),
    LET(set_tid_address),
    LET(set_robust_list),
    LET(rseq),
    LET(prlimit64),
    LET(getrandom),
    LET(write),
    LET(exit),
    LET(exit_group),
    LET(rt_sigreturn),
    LET(getpid),
    LET(gettid),
    LET(clock_gettime),
    LET(clock_nanosleep),
    KILL,
};
/* Which kills for a call of ours that no thread of the program makes. */
static struct sock_filter threads[] = {
    NUMBER,
    BPF_JUMP(BPF_JMP + BPF_JEQ + BPF_K, SYS_pidfd_getfd, 0, 1),
    KILL,
    BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_ALLOW),
};

static void grow(void)
{
    for (int i = 0; i < 240; i++)
        memset(malloc(100000), i, 100000);
    for (int i = 0; i < 20; i++)
        memset(malloc(2000000), i, 2000000);
    nap_us(300000);
    for (int i = 0; i < 100; i++)
        free(malloc(100000));
}

static void *idle(void *arg)
{
    grow();
    return arg;
}

int main(int argc, char **argv)
{
    CHECK(argc > 2);
    int with_threads = strcmp(argv[1], "threads") == 0;
    if (strcmp(argv[2], "outside") == 0) {
        char *again[] = {argv[0], argv[1], "inside", NULL};
        struct sock_fprog p = {sizeof few / sizeof *few, few};
        if (with_threads)
            p = (struct sock_fprog){sizeof threads / sizeof *threads, threads};
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0);
        execv(argv[0], again);
        return 2;
    }
    grow();
    if (with_threads) {
        pthread_t t;
        CHECK(pthread_create(&t, NULL, idle, NULL) == 0);
        CHECK(pthread_join(t, NULL) == 0);
        grow();
    }
    CHECK(write(1, "ok\n", 3) == 3);
    return 0;
}
