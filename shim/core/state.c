/* SPDX-License-Identifier: BSD-2-Clause
 * The states of the library. See state.h. */
#include "core/state.h"

struct runtime_machine hy_machine;
static uint8_t state_now = HY_BOOT; /* enum hy_state */

static void *boot_malloc(size_t n)
{
    return next_alloc()->malloc(n);
}

static void boot_free(void *p)
{
    next_alloc()->free(p);
}

static void *boot_calloc(size_t count, size_t size)
{
    return next_alloc()->calloc(count, size);
}

static void *boot_realloc(void *p, size_t n)
{
    return next_alloc()->realloc(p, n);
}

static void *boot_memalign(size_t align, size_t n)
{
    return next_alloc()->memalign(align, n);
}

static size_t boot_usable_size(void *p)
{
    return next_alloc()->usable_size(p);
}

struct alloc_ops hy_ops = {boot_malloc,  boot_free,     boot_calloc,
                           boot_realloc, boot_memalign, boot_usable_size};

void runtime_set_ops(const struct alloc_ops *ops)
{
    __atomic_store_n(&hy_ops.free, ops->free, __ATOMIC_RELEASE);
    __atomic_store_n(&hy_ops.usable_size, ops->usable_size, __ATOMIC_RELEASE);
    __atomic_store_n(&hy_ops.realloc, ops->realloc, __ATOMIC_RELEASE);
    __atomic_store_n(&hy_ops.memalign, ops->memalign, __ATOMIC_RELEASE);
    __atomic_store_n(&hy_ops.calloc, ops->calloc, __ATOMIC_RELEASE);
    __atomic_store_n(&hy_ops.malloc, ops->malloc, __ATOMIC_RELEASE);
}

bool runtime_ops_are_first(void)
{
    return RUNTIME_OP(malloc) == boot_malloc;
}

enum hy_state runtime_state(void)
{
    return (enum hy_state)__atomic_load_n(&state_now, __ATOMIC_SEQ_CST);
}

bool runtime_change_state(enum hy_state from, enum hy_state to)
{
    uint8_t expected = (uint8_t)from;
    return __atomic_compare_exchange_n(&state_now, &expected, (uint8_t)to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

const char *runtime_state_name(enum hy_state s)
{
    static const char *const names[] = {"boot", "serving", "steering", "passive", "ended"};
    return names[s];
}
