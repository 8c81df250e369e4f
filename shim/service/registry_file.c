/* SPDX-License-Identifier: BSD-2-Clause
 * What is in the registry's file, and whether the owner of a slot still lives. */
#include "service/registry_file.h"

#include <errno.h>

#define MAGIC 0x3147455252425948ull /* "HYBRREG1" */

_Static_assert(sizeof(struct reg_header) == HY_PAGE, "layout is part of REGISTRY_VERSION");
_Static_assert(offsetof(struct reg_header, budget) == 64, "layout is part of REGISTRY_VERSION");
_Static_assert(sizeof(struct reg_slot) == 256, "layout is part of REGISTRY_VERSION");
_Static_assert(offsetof(struct reg_slot, name) == 104, "layout is part of REGISTRY_VERSION");
_Static_assert(sizeof(struct reg_file) == REGISTRY_BYTES, "the contract tells the size");
_Static_assert(__GCC_ATOMIC_LLONG_LOCK_FREE == 2, "a lock would die with its holder");

/* --- owners ------------------------------------------------------------- */

/* state:2 | pid:22 | start time:22 | stack start:18, in one word, so that taking
 * a slot and saying who took it is one step. The kernel's pids end at 2^22. Pid
 * reuse shows in both other parts, exec in the last: 1 in 2^18 passes unseen. */
enum { PID_BITS = 22, START_BITS = 22, STACK_BITS = 18 };
enum { PID_SHIFT = 2, START_SHIFT = PID_SHIFT + PID_BITS, STACK_SHIFT = START_SHIFT + START_BITS };
_Static_assert(STACK_SHIFT + STACK_BITS == 64, "the word is full");

static uint64_t low_bits(uint64_t v, int bits)
{
    return v & (((uint64_t)1 << bits) - 1);
}

uint64_t reg_identity(const struct os_proc_id *id)
{
    uint64_t stack = (id->stack_start >> 4) * 0x9e3779b97f4a7c15ull >> (64 - STACK_BITS);
    if (id->stack_start != 0 && stack == 0)
        stack = 1; /* 0: not told */
    return low_bits((uint64_t)id->pid, PID_BITS) << PID_SHIFT |
           low_bits(id->start_time, START_BITS) << START_SHIFT | stack << STACK_SHIFT;
}

uint64_t reg_owner(uint64_t word)
{
    return word & ~(uint64_t)3;
}

int32_t reg_pid(uint64_t word)
{
    return (int32_t)low_bits(word >> PID_SHIFT, PID_BITS);
}

bool reg_owner_gone(uint64_t word)
{
    struct os_proc_id now;

    if ((reg_state(word) != REG_CLAIMING && reg_state(word) != REG_LIVE) || reg_pid(word) == 0)
        return true; /* no participant writes such a word */
    int err = os_proc_id(reg_pid(word), &now);
    if (err != 0)
        return err == -ESRCH;
    uint64_t was = reg_owner(word), is = reg_identity(&now);
    /* The stack's place is told to processes of the same user only. */
    if (was >> STACK_SHIFT == 0 || is >> STACK_SHIFT == 0)
        return low_bits(was, STACK_SHIFT) != low_bits(is, STACK_SHIFT);
    return was != is;
}

/* --- content ------------------------------------------------------------ */

static const struct {
    uint16_t offset;
    uint32_t value;
} constants[] = {
    {offsetof(struct reg_header, version), REGISTRY_VERSION},
    {offsetof(struct reg_header, header_bytes), sizeof(struct reg_header)},
    {offsetof(struct reg_header, slot_bytes), sizeof(struct reg_slot)},
    {offsetof(struct reg_header, n_slots), REGISTRY_SLOTS},
    {offsetof(struct reg_header, total_bytes), sizeof(struct reg_file)},
};

static bool constants_fit(const struct reg_file *f, bool or_zero)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(constants); i++) {
        uint32_t v = REG_LOAD((const uint32_t *)((const char *)f + constants[i].offset));
        if (v != constants[i].value && !(or_zero && v == 0))
            return false;
    }
    return true;
}

enum reg_content reg_inspect(const struct reg_file *f)
{
    const uint64_t *rest = &f->head.budget, *end = (const uint64_t *)(f + 1);
    uint64_t magic = REG_LOAD(&f->head.magic);

    if (magic == 0) {
        bool blank = constants_fit(f, true);
        for (; blank && rest < end; rest++)
            blank = REG_LOAD(rest) == 0;
        if (blank)
            return REG_BLANK;
        /* Or its creator has become ready while we looked. */
        magic = REG_LOAD(&f->head.magic);
    }
    return magic == MAGIC && constants_fit(f, false) ? REG_READY : REG_FOREIGN;
}

void reg_make_ready(struct reg_file *f)
{
    for (size_t i = 0; i < HY_ARRAY_SIZE(constants); i++)
        REG_STORE((uint32_t *)((char *)f + constants[i].offset), constants[i].value);
    REG_STORE(&f->head.magic, MAGIC);
}
