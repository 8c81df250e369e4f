/* SPDX-License-Identifier: BSD-2-Clause
 * Calls by which a program changes its rights, its namespaces, or confines itself. In Linux these
 * are the calling thread's; our threads are to be as the main one. The libc does not make setuid
 * and its kin the business of one thread: it has all of them change, ours as well. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "core/pause.h"
#include "heap/heap.h"
#include "process/process.h"
#include "sys/dl.h"
#include "sys/lock.h"
#include "sys/os.h"
#include "sys/thread.h"

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

/* What other threads do to themselves leaves the main one and ours alone. */
static bool pause_for_main(void)
{
    return control_is_main(pthread_self()) && control_pause();
}

/* --- what a call will do -------------------------------------------------------------------- */

enum effect { NOTHING, RIGHTS, SANDBOX, STRICT, COPY, LIMIT, MEMORY };

/* A filter that is none is a question. */
static enum effect of_prctl(long option, long arg, long more)
{
    switch (option) {
    case PR_SET_SECCOMP:
        if (arg == SECCOMP_MODE_STRICT)
            return STRICT;
        return arg == SECCOMP_MODE_FILTER && !more ? NOTHING : SANDBOX;
    case PR_CAP_AMBIENT:
        return arg == PR_CAP_AMBIENT_IS_SET ? NOTHING : RIGHTS;
    case PR_SET_TSC:
        os_clock_by_call(arg == PR_TSC_SIGSEGV);
        return NOTHING;
    case PR_SET_KEEPCAPS:
    case PR_SET_SECUREBITS:
    case PR_SET_NO_NEW_PRIVS:
    case PR_CAPBSET_DROP:
        return RIGHTS;
    default:
        return NOTHING;
    }
}

static enum effect of_seccomp(long operation, long arg)
{
    if (operation == SECCOMP_SET_MODE_STRICT)
        return STRICT;
    return operation == SECCOMP_SET_MODE_FILTER && arg ? SANDBOX : NOTHING;
}

#define READY (4 * HY_MIB) /* a span for each size of a small block */

/* In the strict mode not even memory can be had any more. So this thread's cache, and a run from
 * which it is filled though files do not grow, are there before. */
static void make_ready(void)
{
    for (size_t n = 16; n <= READY; n *= 2) {
        void *volatile p = malloc(n);
        free(p);
    }
}

static bool call_begins(enum effect e)
{
    if (e == SANDBOX || e == STRICT)
        runtime_sandboxed();
    if (e == STRICT && !hy_locks_held()) {
        make_ready();
        heap_confine(true);
    }
    return e == RIGHTS && pause_for_main();
}

static void call_ends(enum effect e, bool paused, long result)
{
    if ((e == SANDBOX || e == STRICT) && result == -1)
        runtime_sandbox_failed();
    if (e == STRICT)
        heap_confine(result != -1);
    control_resume(paused);
}

/* --- by the libc's names ---------------------------------------------------------------------- */

HY_EXPORT int unshare(int flags)
{
    DL_NEXT(unshare);
    bool paused = pause_for_main();
    int r = fn(flags);
    control_resume(paused);
    return r;
}

HY_EXPORT int setns(int fd, int type)
{
    DL_NEXT(setns);
    bool paused = pause_for_main();
    int r = fn(fd, type);
    control_resume(paused);
    return r;
}

HY_EXPORT int capset(cap_user_header_t header, const cap_user_data_t data);
HY_EXPORT int capset(cap_user_header_t header, const cap_user_data_t data)
{
    DL_NEXT(capset);
    bool paused = pause_for_main();
    int r = fn(header, data);
    control_resume(paused);
    return r;
}

HY_EXPORT int prctl(int option, ...)
{
    DL_NEXT(prctl);
    unsigned long a[4];
    va_list ap;
    va_start(ap, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(ap, unsigned long);
    va_end(ap);
    enum effect e = of_prctl(option, (long)a[0], (long)a[1]);
    if (HY_LIKELY(e == NOTHING))
        return fn(option, a[0], a[1], a[2], a[3]);
    bool paused = call_begins(e);
    int r = fn(option, a[0], a[1], a[2], a[3]);
    call_ends(e, paused, r);
    return r;
}

/* --- by their numbers ------------------------------------------------------------------------- */

#define RIGHTS_CALLS(X)                                                                            \
    X(SYS_unshare)                                                                                 \
    X(SYS_setns)                                                                                   \
    X(SYS_capset)                                                                                  \
    X(SYS_setuid)                                                                                  \
    X(SYS_setgid)                                                                                  \
    X(SYS_setreuid)                                                                                \
    X(SYS_setregid)                                                                                \
    X(SYS_setresuid)                                                                               \
    X(SYS_setresgid)                                                                               \
    X(SYS_setgroups)
#define OTHER_CALLS(X)                                                                             \
    COPY_CALLS(X)                                                                                  \
    LIMIT_CALLS(X)                                                                                 \
    MEMORY_CALLS(X)                                                                                \
    X(SYS_prctl)                                                                                   \
    X(SYS_seccomp)                                                                                 \
    X(SYS_landlock_restrict_self)

/* mmap_hook.c */
#define MEMORY_CALLS(X)                                                                            \
    X(SYS_mmap)                                                                                    \
    X(SYS_munmap)                                                                                  \
    X(SYS_mremap)                                                                                  \
    X(SYS_mprotect)                                                                                \
    X(SYS_pkey_mprotect)                                                                           \
    X(SYS_madvise)                                                                                 \
    X(SYS_mlock)                                                                                   \
    X(SYS_mlock2)                                                                                  \
    X(SYS_mseal)                                                                                   \
    X(SYS_shmat)

/* Children without fork's handlers (fork_hook.c). */
#if defined(__x86_64__)
#define COPY_CALLS(X) X(SYS_fork) X(SYS_clone) X(SYS_clone3)
#else
#define COPY_CALLS(X)
#endif

/* limit_hook.c; newer machines have only the second. */
#ifdef SYS_setrlimit
#define LIMIT_CALLS(X) X(SYS_setrlimit) X(SYS_prlimit64)
#else
#define LIMIT_CALLS(X) X(SYS_prlimit64)
#endif

/* A bit for each: programs call futex by its number, often. */
#define WORDS    8
#define BIT(nr)  | ((nr) / 64 == AT ? (uint64_t)1 << (nr) % 64 : 0)
#define ALL_BITS (uint64_t)0 RIGHTS_CALLS(BIT) OTHER_CALLS(BIT)
extern const uint64_t hy_watched_calls[WORDS] __attribute__((visibility("hidden")));
const uint64_t hy_watched_calls[WORDS] = {
#define AT 0
    ALL_BITS,
#undef AT
#define AT 1
    ALL_BITS,
#undef AT
#define AT 2
    ALL_BITS,
#undef AT
#define AT 3
    ALL_BITS,
#undef AT
#define AT 4
    ALL_BITS,
#undef AT
#define AT 5
    ALL_BITS,
#undef AT
#define AT 6
    ALL_BITS,
#undef AT
#define AT 7
    ALL_BITS,
#undef AT
};

static enum effect of_call(long nr, long a, long b, long c)
{
    switch (nr) {
    case SYS_prctl:
        return of_prctl(a, b, c);
    case SYS_seccomp:
        return of_seccomp(a, c);
    case SYS_landlock_restrict_self:
        return SANDBOX;
#if defined(__x86_64__)
    case SYS_fork:
    case SYS_clone:
    case SYS_clone3:
        return COPY;
#endif
#ifdef SYS_setrlimit
    case SYS_setrlimit:
#endif
    case SYS_prlimit64:
        return LIMIT;
#define CASE(nr) case nr:
        MEMORY_CALLS(CASE)
        return MEMORY;
    default:
        return RIGHTS;
    }
}

/* All that a call by number can have, as registers have it (and on x86-64, the last one, the
 * stack). */
typedef long (*by_number)(long nr, long a, long b, long c, long d, long e, long f);
#define KEPT_FOR_ASM __attribute__((used, visibility("hidden")))

KEPT_FOR_ASM long hy_call_first(long nr, long a, long b, long c, long d, long e, long f);
KEPT_FOR_ASM by_number hy_next_call = hy_call_first;

long hy_call_first(long nr, long a, long b, long c, long d, long e, long f)
{
    by_number fn = (by_number)dl_next("syscall");
    __atomic_store_n(&hy_next_call, fn, __ATOMIC_RELAXED);
    volatile long r = fn(nr, a, b, c, d, e, f); /* a jump would write to the caller's stack */
    return r;
}

static long copy_process(long nr, long a, long b, long c, long d, long e, long f)
{
    if (HY_UNLIKELY(fork_is_refused()))
        return -1;
    bool begun = fork_unhandled_begins();
    long pid = hy_next_call(nr, a, b, c, d, e, f);
    int saved = errno;
    if (begun)
        fork_unhandled_ends(pid == 0);
    errno = saved;
    return pid;
}

static long set_limit(long nr, long a, long b, long c, long d, long e, long f)
{
    bool all = nr == SYS_prlimit64;
    bool begun = fork_limit_begins((pid_t)(all ? a : 0), (int)(all ? b : a), (void *)(all ? c : b));
    long r = hy_next_call(nr, a, b, c, d, e, f);
    if (begun)
        fork_limit_ends();
    return r;
}

KEPT_FOR_ASM long hy_call_watched(long nr, long a, long b, long c, long d, long e, long f);
long hy_call_watched(long nr, long a, long b, long c, long d, long e, long f)
{
    enum effect what = of_call(nr, a, b, c);
    if (what == COPY)
        return copy_process(nr, a, b, c, d, e, f);
    if (what == LIMIT)
        return set_limit(nr, a, b, c, d, e, f);
    void *told;
    if (what == MEMORY)
        return alter_by_number(nr, (const long[]){a, b, c, d, e}, &told)
                   ? (long)told
                   : hy_next_call(nr, a, b, c, d, e, f);
    bool paused = call_begins(what);
    long r = hy_next_call(nr, a, b, c, d, e, f);
    call_ends(what, paused, r);
    return r;
}

/* A jump: who clones with a stack of the child's own comes back on it, and a child of vfork on that
 * of its parent, which must find it as it was. So only a clone without a stack that copies the
 * memory, and the table of descriptors, comes by a frame of ours. */
#if defined(__x86_64__)
/* Arguments that cannot be read are the kernel's to refuse. */
KEPT_FOR_ASM bool hy_clone3_copies(const struct clone_args *args, size_t size);
bool hy_clone3_copies(const struct clone_args *args, size_t size)
{
    return size >= CLONE_ARGS_SIZE_VER0 && os_can_read(&args->flags) && os_can_read(&args->stack) &&
           args->stack == 0 && !(args->flags & (CLONE_VM | CLONE_FILES));
}

_Static_assert(WORDS * 64 == 512, "the number below");
_Static_assert(SYS_clone == 56 && SYS_clone3 == 435 && (CLONE_VM | CLONE_FILES) == 0x500,
               "the numbers below");
#define PUSH(reg) "push %" reg "\n.cfi_adjust_cfa_offset 8\n"
#define POP(reg)  "pop %" reg "\n.cfi_adjust_cfa_offset -8\n"
__asm__(".pushsection .text.syscall, \"ax\", @progbits\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "cmp $512, %rdi\n"
        "jae 1f\n"
        "lea hy_watched_calls(%rip), %rax\n"
        "bt %rdi, (%rax)\n"
        "jc 2f\n"
        "1: mov hy_next_call(%rip), %rax\n"
        "jmp *%rax\n"
        "2: cmp $56, %rdi\n"
        "je 3f\n"
        "cmp $435, %rdi\n"
        "jne hy_call_watched\n" PUSH("rdi") PUSH("rsi") PUSH("rdx") PUSH("rcx") PUSH("r8")
            PUSH("r9") PUSH("rax") "mov %rsi, %rdi\n"
                                   "mov %rdx, %rsi\n"
                                   "call hy_clone3_copies\n"
                                   "test %al, %al\n" POP("rax") POP("r9") POP("r8") POP("rcx")
                                       POP("rdx") POP("rsi")
                                           POP("rdi") "jz 1b\n"
                                                      "jmp hy_call_watched\n"
                                                      "3: test %rdx, %rdx\n"
                                                      "jnz 1b\n"
                                                      "test $0x500, %rsi\n"
                                                      "jnz 1b\n"
                                                      "jmp hy_call_watched\n"
                                                      ".cfi_endproc\n"
                                                      ".size syscall, . - syscall\n"
                                                      ".popsection\n");
#else
HY_EXPORT long hy_call(long nr, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long hy_call(long nr, long a, long b, long c, long d, long e, long f)
{
    if (HY_UNLIKELY((unsigned long)nr < 64 * WORDS && (hy_watched_calls[nr / 64] >> nr % 64 & 1)))
        return hy_call_watched(nr, a, b, c, d, e, f);
    return __atomic_load_n(&hy_next_call, __ATOMIC_RELAXED)(nr, a, b, c, d, e, f);
}
#endif

/* --- the main thread's end ---------------------------------------------------------------------
 */

HY_EXPORT _Noreturn void pthread_exit(void *value)
{
    DL_NEXT(pthread_exit);
    if (control_is_main(pthread_self()))
        control_main_leaves();
    fn(value);
}

HY_EXPORT _Noreturn void thrd_exit(int value)
{
    DL_NEXT(thrd_exit);
    if (control_is_main(pthread_self()))
        control_main_leaves();
    fn(value);
}

HY_EXPORT int pthread_cancel(pthread_t thread)
{
    DL_NEXT(pthread_cancel);
    if (control_is_main(thread))
        control_main_leaves();
    return fn(thread);
}

HY_EXPORT int pthread_setcanceltype(int type, int *old)
{
    DL_NEXT(pthread_setcanceltype);
    /* Known before the thread can be cancelled so, and until it no longer can. */
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        hy_cancel_note(true, fn);
    int r = fn(type, old);
    if (r == 0 && type == PTHREAD_CANCEL_DEFERRED)
        hy_cancel_note(false, fn);
    return r;
}
