/* SPDX-License-Identifier: BSD-2-Clause
 * What few programs do: stacks out of malloc, for threads, coroutines and handlers; every signal
 * blocked and waited for; a timer that makes threads; children counted by wait; a look at its own
 * pages and CPUs; a page fault handler of its own; exec without arguments. */
#include <dlfcn.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "victim.h"

enum { LARGE = 40, COROUTINES = 40, TURNS = 20, STACK = 128 << 10, THREADS = 8 };

static char *large[LARGE];

static void churn(uint64_t seed)
{
    void *p[64] = {NULL};
    for (int i = 0; i < 4000; i++) {
        uint64_t r = rnd(&seed);
        free(p[r % 64]);
        CHECK((p[r % 64] = malloc((r >> 8) % 40000)) != NULL);
    }
    for (int i = 0; i < 64; i++)
        free(p[i]);
}

static void grow(void)
{
    for (int i = 0; i < LARGE; i++) {
        free(large[i]);
        CHECK((large[i] = malloc(1 << 20)) != NULL);
        fill(large[i], 1 << 20, (uint64_t)i);
    }
}

static char *page_of(void *p)
{
    return (char *)(((uintptr_t)p + 4095) & ~(uintptr_t)4095);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static ucontext_t back, coroutine[COROUTINES];

static void turns(int n)
{
    for (int i = 0; i < TURNS; i++) {
        size_t bytes = (size_t)(n + 1) * 100 + (size_t)i;
        char *p = malloc(bytes);
        fill(p, bytes, (uint64_t)n);
        swapcontext(&coroutine[n], &back);
        CHECK(holds(p, bytes, (uint64_t)n));
        free(p);
    }
}

static void coroutines(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&coroutine[i]);
        coroutine[i].uc_stack.ss_sp = malloc(STACK);
        coroutine[i].uc_stack.ss_size = STACK;
        coroutine[i].uc_link = &back;
        makecontext(&coroutine[i], (void (*)(void))turns, 1, i);
    }
    for (int t = 0; t <= TURNS; t++)
        for (int i = 0; i < COROUTINES; i++)
            swapcontext(&back, &coroutine[i]);
    for (int i = 0; i < COROUTINES; i++)
        free(coroutine[i].uc_stack.ss_sp);
}

static void *on_heap(void *arg)
{
    volatile char frame[30000];
    churn((uint64_t)(uintptr_t)arg + 1);
    frame[100] = 7;
    return (void *)(uintptr_t)frame[100];
}

static void thread_stacks(void)
{
    pthread_t t[THREADS];
    void *stack[THREADS], *got;
    pthread_attr_t a;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_attr_init(&a) == 0);
            stack[i] = malloc(2 * STACK);
            CHECK(pthread_attr_setstack(&a, stack[i], 2 * STACK) == 0);
            CHECK(pthread_create(&t[i], &a, on_heap, (void *)(intptr_t)i) == 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK(pthread_join(t[i], &got) == 0 && got == (void *)7);
            free(stack[i]);
        }
    }
}

static sigjmp_buf out;

static void too_deep(int sig)
{
    (void)sig;
    free(malloc(100));
    siglongjmp(out, 1);
}

static int deeper(int n)
{
    volatile char frame[1000];
    frame[0] = (char)n;
    return n < 0 ? 0 : deeper(n + 1) + frame[0];
}

static void handler_stack(void)
{
    stack_t s = {.ss_sp = malloc(STACK), .ss_size = STACK};
    struct sigaction a = {.sa_handler = too_deep, .sa_flags = SA_ONSTACK};
    CHECK(sigaltstack(&s, NULL) == 0 && sigaction(SIGSEGV, &a, NULL) == 0);
    for (volatile int i = 0; i < 3; i++)
        if (!sigsetjmp(out, 1))
            (void)deeper(1);
    s.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&s, NULL) == 0);
    free(s.ss_sp);
    signal(SIGSEGV, SIG_DFL);
}

/* --- signals, timers, children ---------------------------------------------------------------- */

static void all_signals(void)
{
    sigset_t all, one;
    struct timespec most = {20, 0};
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    for (int s = 1; s <= SIGRTMAX; s++) {
        if (s == SIGKILL || s == SIGSTOP || (s > SIGSYS && s < SIGRTMIN))
            continue;
        CHECK(kill(getpid(), s) == 0);
        sigemptyset(&one);
        sigaddset(&one, s);
        int got;
        while ((got = sigtimedwait(&one, NULL, &most)) < 0 && errno == EINTR)
            ;
        CHECK(got == s);
    }
    CHECK(sigprocmask(SIG_UNBLOCK, &all, NULL) == 0);
}

static int ticks;

static void tick(union sigval v)
{
    churn((uint64_t)v.sival_int);
    __atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST);
}

static void timer_threads(void)
{
    struct sigevent e = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick};
    struct itimerspec every = {{0, 20000000}, {0, 20000000}};
    timer_t t;
    e.sigev_value.sival_int = 3;
    CHECK(timer_create(CLOCK_MONOTONIC, &e, &t) == 0);
    CHECK(timer_settime(t, 0, &every, NULL) == 0);
    while (__atomic_load_n(&ticks, __ATOMIC_SEQ_CST) < 8)
        churn(5);
    CHECK(timer_delete(t) == 0);
}

static void no_children(void)
{
    int st, how[] = {0, __WALL, __WCLONE};
    for (int i = 0; i < 3; i++)
        CHECK(waitpid(-1, &st, WNOHANG | how[i]) == -1 && errno == ECHILD);
}

static void traced(void)
{
    int st;
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
        raise(SIGUSR1);
        grow();
        raise(SIGUSR2);
        _exit(5);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(waitpid(-1, &st, __WALL) == pid && WIFSTOPPED(st));
        CHECK(WSTOPSIG(st) == (i ? SIGUSR2 : SIGUSR1));
        CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
    }
    CHECK(waitpid(-1, &st, __WALL) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 5);
}

static void no_arguments(void)
{
    char *none[] = {NULL};
    for (int way = 0; way < 3; way++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (way == 1)
                clearenv();
            execve("/bin/true", OPAQUE((char **)(way ? none : NULL)), way == 2 ? none : NULL);
            _exit(9);
        }
        CHECK(reap(pid) == 0);
    }
    CHECK(execve("/bin/true", OPAQUE((char **)8), NULL) == -1 && errno == EFAULT);
}

/* --- pages and CPUs ------------------------------------------------------------------------------
 */

static void own_pages(void)
{
    unsigned char v[256];
    for (int i = 0; i < LARGE; i++) {
        CHECK(mincore(page_of(large[i]), 255 * 4096, v) == 0);
        for (int k = 0; k < 255; k++)
            CHECK(v[k] & 1);
        CHECK(holds(large[i], 1 << 20, (uint64_t)i));
    }
    char *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mincore(m, 1 << 20, v) == 0 && !(v[0] & 1));
    *m = 1;
    CHECK(mincore(m, 1 << 20, v) == 0 && (v[0] & 1));
    CHECK(munmap(m, 1 << 20) == 0);
#ifdef MAP_32BIT /* of x86-64 */
    m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(m != MAP_FAILED && (uintptr_t)m < (1ul << 31) && munmap(m, 1 << 20) == 0);
#endif
}

static void own_cpus(void)
{
    cpu_set_t all, one, got;
    CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (!CPU_ISSET(c, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(c, &one);
        CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
        churn(7);
        CHECK(sched_getaffinity(0, sizeof(got), &got) == 0 && CPU_EQUAL(&one, &got));
    }
    CHECK(sched_setaffinity(0, sizeof(all), &all) == 0);
    CHECK(sched_getaffinity(0, sizeof(got), &got) == 0 && CPU_EQUAL(&all, &got));
}

/* Pages that the program fills itself: of its own mapping, and of a block. */
static void fills_pages(long fd, char *at, size_t bytes, bool fresh)
{
    static char page[4096];
    struct uffdio_register reg = {.range = {(uintptr_t)at, bytes},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK(ioctl((int)fd, UFFDIO_REGISTER, &reg) == 0);
    for (size_t o = 0; o < bytes; o += 4096) {
        struct uffdio_copy c = {.dst = (uintptr_t)at + o, .src = (uintptr_t)page, .len = 4096};
        CHECK(ioctl((int)fd, UFFDIO_COPY, &c) == 0 || errno == EEXIST);
    }
    CHECK(ioctl((int)fd, UFFDIO_UNREGISTER, &reg.range) == 0);
    CHECK(!fresh || all_zero(at, bytes));
}

static bool ours; /* the heap outlives what the libc's does not */

/* Pages of a block that were given back are filled by the program when they are touched; and when
 * it is freed so, nobody waits for the program to fill the next one. */
static void filled_again(long fd)
{
    enum { BYTES = 1 << 20 };
    static char page[4096];
    char *p = aligned_alloc(4096, BYTES);
    struct uffdio_register reg = {.range = {(uintptr_t)p, BYTES},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
    memset(p, 1, BYTES);
    memset(page, 5, sizeof(page));
    if (ioctl((int)fd, UFFDIO_REGISTER, &reg) != 0)
        return; /* the plain heap's may not be taken here */
    CHECK(madvise(p, BYTES, MADV_DONTNEED) == 0);
    for (size_t o = 0; o < BYTES; o += 4096) {
        struct uffdio_copy c = {.dst = (uintptr_t)p + o, .src = (uintptr_t)page, .len = 4096};
        CHECK(ioctl((int)fd, UFFDIO_COPY, &c) == 0); /* EEXIST: they were not missing */
    }
    CHECK(p[BYTES - 1] == 5);
    CHECK(madvise(p, BYTES, MADV_DONTNEED) == 0);
    if (!ours)
        CHECK(ioctl((int)fd, UFFDIO_UNREGISTER, &reg.range) == 0);
    free(p);
    for (int i = 0; i < 30; i++) {
        char *q = malloc(BYTES);
        memset(q, i, BYTES);
        if (i % 3)
            free(q);
    }
}

static void own_faults(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0)
        return; /* not here, and not in the plain run */
    CHECK(ioctl((int)fd, UFFDIO_API, &api) == 0);
    size_t bytes = 8 << 20;
    char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fills_pages(fd, m, bytes, true);
    CHECK(munmap(m, bytes) == 0);
    char *p = malloc(4 << 20);
    fills_pages(fd, page_of(p), 3 << 20, false);
    memset(p, 1, 4 << 20);
    free(p);
    filled_again(fd);
    close((int)fd);
}

#ifndef SYS_mseal
#define SYS_mseal 462
#endif

/* Nothing can be mapped over it any more: a child still has memory of its own there. */
static void sealed(void)
{
    char *p = aligned_alloc(4096, 1 << 20);
    memset(p, 1, 1 << 20);
    if (syscall(SYS_mseal, p, 1 << 19, 0) != 0)
        return; /* not here, and not in the plain run */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        memset(p, 2, 1 << 20);
        free(p);
        churn(7);
        _exit(0);
    }
    CHECK(reap(child) == 0);
    for (size_t i = 0; i < 1 << 20; i += 512)
        CHECK(p[i] == 1);
}

static void namespaces(void)
{
    void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    CHECK(libc != NULL);
    void *(*its_malloc)(size_t) = (void *(*)(size_t))dlsym(libc, "malloc");
    void (*its_free)(void *) = (void (*)(void *))dlsym(libc, "free");
    for (size_t i = 0; i < 500; i++)
        its_free(memset(its_malloc(i * 10 + 1), 1, i * 10 + 1));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } part[] = {{"coroutines", coroutines},
                {"thread stacks", thread_stacks},
                {"handler's stack", handler_stack},
                {"no children", no_children},
                {"all signals", all_signals},
                {"traced", traced},
                {"no arguments", no_arguments},
                {"pages", own_pages},
                {"CPUs", own_cpus},
                {"faults", own_faults},
                {"namespaces", namespaces},
                {"sealed", sealed},
                {"timer", timer_threads}};
    (void)argv;
    ours = argc > 1;
    alarm(240);
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
        grow();
        part[i].fn();
        puts(part[i].name);
        fflush(stdout);
    }
    return 0;
}
