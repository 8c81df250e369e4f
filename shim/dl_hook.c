/* SPDX-License-Identifier: BSD-2-Clause
 * dlopen without RTLD_DEEPBIND. With it a library's malloc and free are the libc's, whatever was
 * preloaded: its blocks and the program's would be given to the wrong free. A process that is
 * passive for good has one allocator in any case, and keeps the flag. A library in a namespace of
 * its own (dlmopen) has a libc of its own as well, whose blocks are foreign to all others, with
 * or without us: nothing is changed there.
 *
 * The loader goes by the caller's object (RUNPATH, $ORIGIN, its namespace), which it finds by the
 * return address. So these are jumps: the stack is the caller's. */
#include <dlfcn.h>
#include <stdint.h>

#include "core/state.h"
#include "sys/dl.h"

/* Returned in two registers. */
struct way {
    void *next;
    uint64_t flags;
};

static uint64_t bind_as_others(int flags)
{
    return (uint32_t)(runtime_state() == HY_PASSIVE ? flags : flags & ~RTLD_DEEPBIND);
}

#define KEPT_FOR_ASM __attribute__((used, visibility("hidden")))

KEPT_FOR_ASM struct way hy_way_to_dlopen(int flags);
struct way hy_way_to_dlopen(int flags)
{
    static void *next;
    void *fn = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (!fn)
        __atomic_store_n(&next, fn = dl_next("dlopen"), __ATOMIC_RELAXED);
    return (struct way){fn, bind_as_others(flags)};
}

KEPT_FOR_ASM struct way hy_way_to_dlmopen(Lmid_t where, int flags);
struct way hy_way_to_dlmopen(Lmid_t where, int flags)
{
    static void *next;
    void *fn = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (!fn)
        __atomic_store_n(&next, fn = dl_next("dlmopen"), __ATOMIC_RELAXED);
    return (struct way){fn, where == LM_ID_BASE ? bind_as_others(flags) : (uint32_t)flags};
}

/* A compiler may turn a last call into a jump; these must. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "mov %esi, %edi\n"
        "call hy_way_to_dlopen\n"
        "mov %edx, %esi\n"
        "pop %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "jmp *%rax\n"
        ".cfi_endproc\n"
        ".size dlopen, . - dlopen\n"

        ".globl dlmopen\n"
        ".type dlmopen, @function\n"
        "dlmopen:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "push %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "push %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "sub $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "mov %edx, %esi\n"
        "call hy_way_to_dlmopen\n"
        "add $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "jmp *%rax\n"
        ".cfi_endproc\n"
        ".size dlmopen, . - dlmopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        "dlopen:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "stp x0, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 30, -8\n"
        "mov w0, w1\n"
        "bl hy_way_to_dlopen\n"
        "mov x16, x0\n"
        "ldp x0, x30, [sp], #16\n"
        ".cfi_restore 30\n"
        ".cfi_def_cfa_offset 0\n"
        "br x16\n"
        ".cfi_endproc\n"
        ".size dlopen, . - dlopen\n"

        ".globl dlmopen\n"
        ".type dlmopen, %function\n"
        "dlmopen:\n"
        ".cfi_startproc\n"
        "hint #34\n"
        "stp x0, x1, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        "str x30, [sp, #16]\n"
        ".cfi_offset 30, -16\n"
        "mov w1, w2\n"
        "bl hy_way_to_dlmopen\n"
        "mov x16, x0\n"
        "mov x2, x1\n"
        "ldr x30, [sp, #16]\n"
        ".cfi_restore 30\n"
        "ldp x0, x1, [sp], #32\n"
        ".cfi_def_cfa_offset 0\n"
        "br x16\n"
        ".cfi_endproc\n"
        ".size dlmopen, . - dlmopen\n");
#endif
