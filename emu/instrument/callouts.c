/* SPDX-License-Identifier: BSD-2-Clause
 * The call-outs that gcc and clang make with -fsanitize=thread, and basic blocks from
 * -fsanitize-coverage=trace-pc. The program is linked with libpmemu and without
 * -fsanitize, so that the sanitizer's own library stays away.
 *
 * Reads of 8 and 16 bytes and atomics are taken to lie within one line (they are
 * aligned); the unaligned kinds look at both ends. Atomics are sequentially
 * consistent whatever was asked: stronger is always allowed. A value that other
 * threads may see is published when this thread's time is. */
#include "core/core.h"

#define EXPORT __attribute__((visibility("default")))

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define ACCESS(n)                                                                                  \
    EXPORT void __tsan_read##n(void *a)                                                            \
    {                                                                                              \
        emu_touch(a, 0);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_write##n(void *a)                                                           \
    {                                                                                              \
        emu_touch(a, 1);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_read##n##_pc(void *a, void *pc)                                             \
    {                                                                                              \
        (void)pc;                                                                                  \
        emu_touch(a, 0);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_write##n##_pc(void *a, void *pc)                                            \
    {                                                                                              \
        (void)pc;                                                                                  \
        emu_touch(a, 1);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_volatile_read##n(void *a)                                                   \
    {                                                                                              \
        emu_touch(a, 0);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_volatile_write##n(void *a)                                                  \
    {                                                                                              \
        emu_touch(a, 1);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_read_write##n(void *a)                                                      \
    {                                                                                              \
        emu_touch(a, 0);                                                                           \
        emu_touch(a, 1);                                                                           \
    }                                                                                              \
    EXPORT void __tsan_unaligned_read##n(void *a)                                                  \
    {                                                                                              \
        emu_touch_range(a, n, 0);                                                                  \
    }                                                                                              \
    EXPORT void __tsan_unaligned_write##n(void *a)                                                 \
    {                                                                                              \
        emu_touch_range(a, n, 1);                                                                  \
    }                                                                                              \
    EXPORT void __tsan_unaligned_volatile_read##n(void *a)                                         \
    {                                                                                              \
        emu_touch_range(a, n, 0);                                                                  \
    }                                                                                              \
    EXPORT void __tsan_unaligned_volatile_write##n(void *a)                                        \
    {                                                                                              \
        emu_touch_range(a, n, 1);                                                                  \
    }

/* clang-format off: one line each reads as a table */
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

EXPORT void __tsan_read_range(void *a, unsigned long n)
{
    emu_touch_range(a, n, 0);
}
EXPORT void __tsan_write_range(void *a, unsigned long n)
{
    emu_touch_range(a, n, 1);
}
EXPORT void __tsan_vptr_read(void **a)
{
    emu_touch(a, 0);
}
EXPORT void __tsan_vptr_update(void **a, void *v)
{
    (void)v;
    emu_touch(a, 1);
}
EXPORT void __tsan_func_entry(void *pc)
{
    (void)pc;
}
EXPORT void __tsan_func_exit(void)
{
}
EXPORT void __tsan_ignore_thread_begin(void)
{
}
EXPORT void __tsan_ignore_thread_end(void)
{
}
EXPORT void __tsan_init(void)
{
}
EXPORT void __sanitizer_cov_trace_pc(void)
{
    emu_compute();
}

EXPORT void __tsan_atomic_thread_fence(int o)
{
    (void)o;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
EXPORT void __tsan_atomic_signal_fence(int o)
{
    (void)o;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
/* clang-format on */

static inline void before_store(const volatile void *a)
{
    emu_settle_debt();
    emu_touch(a, 1);
}

#define FETCH(n, type, op)                                                                         \
    EXPORT type __tsan_atomic##n##_fetch_##op(volatile type *a, type v, int o)                     \
    {                                                                                              \
        (void)o;                                                                                   \
        before_store(a);                                                                           \
        return __atomic_fetch_##op(a, v, __ATOMIC_SEQ_CST);                                        \
    }

#define ATOMIC(n, type)                                                                            \
    EXPORT type __tsan_atomic##n##_load(const volatile type *a, int o)                             \
    {                                                                                              \
        (void)o;                                                                                   \
        emu_touch(a, 0);                                                                           \
        return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    EXPORT void __tsan_atomic##n##_store(volatile type *a, type v, int o)                          \
    {                                                                                              \
        if (o == __ATOMIC_RELAXED) /* a sign to nobody */                                          \
            emu_touch(a, 1);                                                                       \
        else                                                                                       \
            before_store(a);                                                                       \
        __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                              \
    EXPORT type __tsan_atomic##n##_exchange(volatile type *a, type v, int o)                       \
    {                                                                                              \
        (void)o;                                                                                   \
        before_store(a);                                                                           \
        return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                        \
    }                                                                                              \
    EXPORT int __tsan_atomic##n##_compare_exchange_strong(volatile type *a, type *e, type v,       \
                                                          int o, int f)                            \
    {                                                                                              \
        (void)o;                                                                                   \
        (void)f;                                                                                   \
        before_store(a);                                                                           \
        return __atomic_compare_exchange_n(a, e, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
    }                                                                                              \
    EXPORT int __tsan_atomic##n##_compare_exchange_weak(volatile type *a, type *e, type v, int o,  \
                                                        int f)                                     \
    {                                                                                              \
        return __tsan_atomic##n##_compare_exchange_strong(a, e, v, o, f);                          \
    }                                                                                              \
    EXPORT type __tsan_atomic##n##_compare_exchange_val(volatile type *a, type e, type v, int o,   \
                                                        int f)                                     \
    {                                                                                              \
        (void)__tsan_atomic##n##_compare_exchange_strong(a, &e, v, o, f);                          \
        return e;                                                                                  \
    }                                                                                              \
    FETCH(n, type, add)                                                                            \
    FETCH(n, type, sub)                                                                            \
    FETCH(n, type, and)                                                                            \
    FETCH(n, type, or)                                                                             \
    FETCH(n, type, xor)                                                                            \
    FETCH(n, type, nand)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 uint128;
ATOMIC(128, uint128)
#endif
