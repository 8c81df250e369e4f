/* SPDX-License-Identifier: BSD-2-Clause
 * A program that confines all its threads by a filter that kills: none of them may be one that
 * makes other calls. And questions about filters confine nobody. */
#include "victim.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(n)                                                                                   \
    BPF_JUMP(BPF_JMP + BPF_JEQ + BPF_K, SYS_##n, 0, 1), BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD + BPF_W + BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(read),
    ALLOW(write),
    ALLOW(exit),
    ALLOW(exit_group),
    ALLOW(rt_sigreturn),
    ALLOW(clock_gettime),
    ALLOW(mmap),
    ALLOW(munmap),
    ALLOW(madvise),
    ALLOW(mprotect),
    ALLOW(futex),
    ALLOW(brk),
    BPF_STMT(BPF_RET + BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

static void grow(void)
{
    for (int i = 0; i < 240; i++)
        memset(malloc(100000), i, 100000);
    nap_us(400000);
    for (int i = 0; i < 100; i++)
        memset(malloc(100000), i, 100000);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* read, write and exit alone are left: what libc serves from what it has, we do as well. */
static void strict(void)
{
    int status;
    grow();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
        for (size_t i = 0; i < 200; i++) {
            char *p = malloc(i * 5 + 1);
            p[i] = 1;
            free(p);
        }
        syscall(SYS_exit, 9);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    puts("ok");
}

/* The vDSO tells the time by a counter that kills from here on: an allocator asks for none. */
static void without_counter(void)
{
    grow();
    (void)prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0); /* x86 only */
    grow();
    nap_us(300000);
    grow();
    pid_t pid = fork();
    if (pid == 0) {
        grow();
        exit(3);
    }
    CHECK(pid > 0 && reap(pid) == 3);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    if (argv[1][0] == 'c') {
        without_counter();
        return 0;
    }
    if (argv[1][0] == 's') {
        strict();
        return 0;
    }
    grow();
    for (int i = 0; i < 3; i++) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 1 << 30, &program) == -1 &&
              errno == EINVAL);
        nap_us(100000);
    }
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    grow();
    if (argv[1][0] == 't') /* all threads */
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
              0);
    else
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    for (int i = 0; i < 400; i++)
        memset(malloc(i % 20 ? 100000 : 2000000), i, 100000);
    for (double end = seconds() + 1.5; seconds() < end;)
        ;
    (void)!write(1, "ok\n", 3);
    _exit(5);
}
