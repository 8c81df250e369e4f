/* SPDX-License-Identifier: BSD-2-Clause
 * The walk of x86-64 and its cache; cfi.c reads the tables. */
#include "sys/walk/unwind.h"

#include <errno.h>
#include <stdio.h>
#include <sys/auxv.h>

#include "sys/os.h"
#include "sys/walk/cfi.h"
#include "sys/walk/modules.h"

/* What is known of the frame at one pc, in one word so that it is read and
 * written atomically: 1 valid, 33 high bits of pc (the low 14 choose the
 * entry), 2 kind, 14 CFA offset / 8, 13 distance of the saved rbp / 8 (0: not saved). */
#define CACHE_BITS 14
#define CACHE_SIZE (1u << CACHE_BITS)
static uint64_t *cache; /* NULL before unwind_open */
static uint64_t cache_epoch = 1;

enum { SHIFT_TAG = 30, SHIFT_KIND = 28, SHIFT_CFA = 14, SHIFT_RBP = 1 };
#define CFA_MAX 0x3fffu
#define RBP_MAX 0x1fffu
#define PC_MAX  ((uintptr_t)1 << 47)

/* No frame is believed to be larger: a table that errs must not lead the walk
 * far away from the stack. */
#define FRAME_MAX      ((uintptr_t)1 << 20)
#define OWN_FRAMES_MAX 32

static uint64_t pack(uintptr_t pc, const struct cfi_rule *r)
{
    uint32_t cfa = (uint32_t)r->cfa_offset / 8, rbp = (uint32_t)r->rbp_distance / 8;
    if (cfa > CFA_MAX || rbp > RBP_MAX)
        return 0;
    return (uint64_t)(pc >> CACHE_BITS) << SHIFT_TAG | (uint64_t)r->kind << SHIFT_KIND |
           (uint64_t)cfa << SHIFT_CFA | (uint64_t)rbp << SHIFT_RBP | 1;
}

/* After dlclose and dlopen at the same addresses, what was known of them is void. */
static void check_epoch(void)
{
    uint64_t now = modules_epoch();
    if (HY_LIKELY(__atomic_load_n(&cache_epoch, __ATOMIC_ACQUIRE) == now))
        return;
    for (unsigned i = 0; i < CACHE_SIZE; i++)
        __atomic_store_n(&cache[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cache_epoch, now, __ATOMIC_RELEASE);
}

/* The packed rule for pc. Not packable means STOP, and is not remembered. */
static HY_COLD uint64_t learn(uintptr_t pc)
{
    struct module m;
    struct cfi_rule rule;
    if (module_find(pc, &m) != 0)
        return 0;
    cfi_find(m.eh_frame_hdr, m.low, m.high, pc, &rule);
    uint64_t w = pack(pc, &rule);
    if (w != 0)
        __atomic_store_n(&cache[pc & (CACHE_SIZE - 1)], w, __ATOMIC_RELAXED);
    return w;
}

struct registers {
    uintptr_t pc, rsp, rbp;
    uintptr_t top; /* nothing at or above it is read */
};

#define STACK_MAX ((uintptr_t)1 << 30)

/* glibc puts a thread's control block at the top of its stack, also of a stack
 * that the program gave it; above the frames of main lie the kernel's random
 * bytes. On other stacks (coroutines) only FRAME_MAX limits a step. */
static uintptr_t top_of_stack(uintptr_t rsp)
{
    static uintptr_t of_main;
    uintptr_t tcb = (uintptr_t)__builtin_thread_pointer();
    uintptr_t main_top = __atomic_load_n(&of_main, __ATOMIC_RELAXED);
    if (HY_UNLIKELY(main_top == 0)) {
        main_top = getauxval(AT_RANDOM);
        __atomic_store_n(&of_main, main_top, __ATOMIC_RELAXED);
    }
    if (tcb - rsp < STACK_MAX)
        return tcb;
    return main_top - rsp < STACK_MAX ? main_top : UINTPTR_MAX;
}

/* The stack belongs to the caller's frames: no sanitizer has a say in it. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static uintptr_t peek(uintptr_t at)
{
    return *(const volatile uintptr_t *)at;
}

static bool in_frame(uintptr_t at, uintptr_t rsp)
{
    return (at & 7) == 0 && at - rsp < FRAME_MAX;
}

/* The CFA of a frame that realigned its stack: it lies below rbp. 0: none. */
static HY_COLD uintptr_t realigned_cfa(const struct registers *r, uintptr_t below)
{
    return in_frame(r->rbp, r->rsp) && r->rbp < r->top && r->rbp - r->rsp >= below
               ? peek(r->rbp - below)
               : 0;
}

/* To the caller's frame; false at the end of what can be known. Everything that
 * is read lies between rsp and the CFA, which is at most FRAME_MAX away. */
static inline bool step(struct registers *r, uint64_t w)
{
    enum cfi_kind kind = (enum cfi_kind)(w >> SHIFT_KIND & 3);
    uintptr_t offset = (w >> SHIFT_CFA & CFA_MAX) * 8;
    uintptr_t distance = (w >> SHIFT_RBP & RBP_MAX) * 8;
    uintptr_t cfa = (kind == CFI_RSP ? r->rsp : r->rbp) + offset;
    if (HY_UNLIKELY(kind != CFI_RSP && kind != CFI_RBP)) {
        if (kind != CFI_REALIGNED || (cfa = realigned_cfa(r, offset)) == 0)
            return false;
        distance = cfa - r->rbp; /* its caller's rbp is where rbp points to */
    }
    if (!in_frame(cfa, r->rsp) || cfa == r->rsp || cfa > r->top || distance > cfa - r->rsp)
        return false;
    r->pc = peek(cfa - 8);
    if (distance != 0)
        r->rbp = peek(cfa - distance);
    r->rsp = cfa;
    return r->pc - HY_PAGE < PC_MAX;
}

__attribute__((noinline)) unsigned unwind_stack(uintptr_t *addr, unsigned n, uintptr_t skip_from,
                                                uintptr_t skip_to)
{
    struct registers r;
    uintptr_t start = 0, end = 0;
    unsigned got = 0, own = 0;
    __asm__ volatile("leaq 0f(%%rip), %0\n0:\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                     : "=&r"(r.pc), "=&r"(r.rsp), "=&r"(r.rbp));
    r.top = top_of_stack(r.rsp);
    r.pc++; /* the tables are asked for pc - 1: a return address may lie behind its function */
    while (got < n && own < OWN_FRAMES_MAX) {
        uintptr_t pc = r.pc - 1;
        if (HY_UNLIKELY(pc - start >= end - start)) {
            if (module_range(pc, &start, &end) != 0)
                break;
            check_epoch();
        }
        uint64_t w = __atomic_load_n(&cache[pc & (CACHE_SIZE - 1)], __ATOMIC_RELAXED);
        if (HY_UNLIKELY((w & 1) == 0 || w >> SHIFT_TAG != pc >> CACHE_BITS))
            w = learn(pc);
        if (!step(&r, w))
            break;
        if (got == 0 && r.pc - skip_from < skip_to - skip_from)
            own++;
        else
            addr[got++] = r.pc;
    }
    return got;
}

bool unwind_is_harmless(void)
{
    return true;
}

int unwind_open(char *err, size_t err_cap)
{
    void *m;
    if (cache)
        return 0;
    if (os_map_table(CACHE_SIZE * sizeof(cache[0]), &m)) {
        snprintf(err, err_cap, "no memory to note frames in");
        return -ENOMEM;
    }
    __atomic_store_n(&cache, (uint64_t *)m, __ATOMIC_RELEASE);
    return 0;
}

void unwind_prefork(void)
{
}

void unwind_postfork(void)
{
}
