/* SPDX-License-Identifier: BSD-2-Clause
 * The re-entrancy guard: depth > 0 while the library itself (or a library that
 * it calls: memkind, libnuma, libunwind, the loader) runs in this thread.
 * Allocations under the guard go straight to the next allocator, never to a
 * heap of ours, so no code of ours can wait for itself.
 * Initial-exec TLS: __tls_get_addr may itself allocate. */
#ifndef HYBRID_BASE_GUARD_H
#define HYBRID_BASE_GUARD_H

extern __thread int hy_guard_depth __attribute__((tls_model("initial-exec")));

static inline void hy_guard_enter(void)
{
    hy_guard_depth++;
}

static inline void hy_guard_leave(void)
{
    hy_guard_depth--;
}

static inline int hy_guarded(void)
{
    return hy_guard_depth > 0;
}

#endif
