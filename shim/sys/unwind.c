/* SPDX-License-Identifier: BSD-2-Clause
 * The walk and its cache; cfi.c reads the tables. */
#include "sys/unwind.h"

#include "sys/cfi.h"
#include "sys/modules.h"

#if defined(__x86_64__)

/* What is known of the frame at one pc, in one word so that it is read and
 * written atomically: 1 valid, 33 high bits of pc (the low 14 choose the
 * entry), 2 kind, 14 CFA offset / 8, 13 distance of the saved rbp / 8 (0: not saved). */
#define CACHE_BITS 14
#define CACHE_SIZE (1u << CACHE_BITS)
static uint64_t cache[CACHE_SIZE];
static uint64_t cache_epoch = 1;

enum { SHIFT_TAG = 30, SHIFT_KIND = 28, SHIFT_CFA = 14, SHIFT_RBP = 1 };
#define CFA_MAX 0x3fffu
#define RBP_MAX 0x1fffu
#define PC_MAX  ((uintptr_t)1 << 47)

/* No frame is believed to be larger: a table that errs must not lead the walk
 * far away from the stack. */
#define FRAME_MAX ((uintptr_t)1 << 20)
#define OWN_FRAMES_MAX 32

static uint64_t pack(uintptr_t pc, const struct cfi_rule *r)
{
    uint32_t cfa = (uint32_t)r->cfa_offset / 8, rbp = (uint32_t)r->rbp_distance / 8;
    if (cfa > CFA_MAX || rbp > RBP_MAX)
        return 0;
    return (uint64_t)(pc >> CACHE_BITS) << SHIFT_TAG | (uint64_t)r->kind << SHIFT_KIND |
           (uint64_t)cfa << SHIFT_CFA | (uint64_t)rbp << SHIFT_RBP | 1;
}

static void unpack(uint64_t w, struct cfi_rule *ret)
{
    ret->kind = (enum cfi_kind)(w >> SHIFT_KIND & 3);
    ret->cfa_offset = (int32_t)(w >> SHIFT_CFA & CFA_MAX) * 8;
    ret->rbp_distance = (int32_t)(w >> SHIFT_RBP & RBP_MAX) * 8;
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

static void frame_rule(uintptr_t pc, const struct module *m, struct cfi_rule *ret)
{
    uint64_t *entry = &cache[pc & (CACHE_SIZE - 1)];
    uint64_t w = __atomic_load_n(entry, __ATOMIC_RELAXED);
    if (HY_LIKELY((w & 1) != 0 && w >> SHIFT_TAG == pc >> CACHE_BITS)) {
        unpack(w, ret);
        return;
    }
    cfi_find(m->eh_frame_hdr, m->low, m->high, pc, ret);
    w = pack(pc, ret);
    if (w != 0)
        __atomic_store_n(entry, w, __ATOMIC_RELAXED);
}

struct registers {
    uintptr_t pc, rsp, rbp;
};

static bool in_frame(uintptr_t at, uintptr_t rsp)
{
    return (at & 7) == 0 && at >= rsp && at - rsp < FRAME_MAX;
}

/* The stack belongs to the caller's frames: no sanitizer has a say in it. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static uintptr_t peek(uintptr_t at)
{
    return *(const volatile uintptr_t *)at;
}

/* To the caller's frame; false at the end of what can be known. */
static bool step(struct registers *r, const struct cfi_rule *rule)
{
    uintptr_t cfa;
    switch (rule->kind) {
    case CFI_RSP:
        cfa = r->rsp + (uintptr_t)rule->cfa_offset;
        break;
    case CFI_RBP:
        cfa = r->rbp + (uintptr_t)rule->cfa_offset;
        break;
    case CFI_REALIGNED:
        if (!in_frame(r->rbp, r->rsp) || r->rbp - (uintptr_t)rule->cfa_offset < r->rsp)
            return false;
        cfa = peek(r->rbp - (uintptr_t)rule->cfa_offset);
        break;
    default:
        return false;
    }
    if (!in_frame(cfa, r->rsp) || cfa < r->rsp + 8)
        return false;
    uintptr_t rbp = r->rbp;
    if (rule->kind == CFI_REALIGNED) {
        rbp = peek(r->rbp);
    } else if (rule->rbp_distance != 0) {
        uintptr_t at = cfa - (uintptr_t)rule->rbp_distance;
        if (at < r->rsp || at > cfa)
            return false;
        rbp = peek(at);
    }
    r->pc = peek(cfa - 8);
    r->rsp = cfa;
    r->rbp = rbp;
    return r->pc > HY_PAGE && r->pc < PC_MAX;
}

__attribute__((noinline)) unsigned unwind_stack(uintptr_t *addr, unsigned n, uintptr_t skip_from,
                                                uintptr_t skip_to)
{
    struct registers r;
    struct module m = {0};
    unsigned got = 0, own = 0;
    __asm__ volatile("leaq 0f(%%rip), %0\n0:\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                     : "=&r"(r.pc), "=&r"(r.rsp), "=&r"(r.rbp));
    r.pc++; /* the tables are asked for pc - 1: a return address may lie behind its function */
    while (got < n && own < OWN_FRAMES_MAX) {
        struct cfi_rule rule;
        uintptr_t pc = r.pc - 1;
        if (pc < m.start || pc >= m.end) {
            if (module_find(pc, &m) != 0)
                break;
            check_epoch();
        }
        frame_rule(pc, &m, &rule);
        if (!step(&r, &rule))
            break;
        if (got == 0 && r.pc >= skip_from && r.pc < skip_to)
            own++;
        else
            addr[got++] = r.pc;
    }
    return got;
}

#else

unsigned unwind_stack(uintptr_t *addr, unsigned n, uintptr_t skip_from, uintptr_t skip_to)
{
    (void)addr;
    (void)n;
    (void)skip_from;
    (void)skip_to;
    return 0;
}

#endif
