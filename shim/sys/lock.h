/* SPDX-License-Identifier: BSD-2-Clause
 * Locks that know their owner. A signal handler may come in the middle of malloc and call exit,
 * fork, mmap, malloc or free itself: what its own thread holds it must never wait for. The
 * owner is the lock's word, so there is no moment in which a lock is held by nobody known.
 * Only futex is asked of the kernel. */
#ifndef HYBRID_SYS_LOCK_H
#define HYBRID_SYS_LOCK_H

#include "base/types.h"

struct hy_lock {
    uint64_t word; /* 0: free; else its owner, bit 0: somebody waits */
    bool by_fork;  /* taken by hy_lock_prefork */
};

/* Locks that this thread holds or is about to take: > 0 means that a handler has interrupted
 * code of ours, and that nothing which takes a lock may be begun. */
extern __thread int hy_locks_depth __attribute__((tls_model("initial-exec")));

static inline bool hy_locks_held(void)
{
    return HY_UNLIKELY(hy_locks_depth > 0);
}

/* A thread that may be cancelled at any moment (pthread_setcanceltype) would leave its locks to
 * nobody, and its cache half changed: it is cancelled only after what lies between these. */
extern __thread uint8_t hy_cancel_any __attribute__((tls_model("initial-exec")));
void hy_cancel_hold(void);
void hy_cancel_let(void); /* may not return */
/* By the hook, before it is so and after it was; the libc's own function. */
void hy_cancel_note(bool any_moment, int (*setter)(int type, int *old));

static inline void hy_cancel_enter(void)
{
    if (HY_UNLIKELY(hy_cancel_any))
        hy_cancel_hold();
}

static inline void hy_cancel_leave(void)
{
    if (HY_UNLIKELY(hy_cancel_any))
        hy_cancel_let();
}

/* Around work that takes locks of another kind. */
static inline void hy_locks_enter(void)
{
    hy_cancel_enter();
    hy_locks_depth++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void hy_locks_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    hy_locks_depth--;
    hy_cancel_leave();
}

static inline uint64_t hy_lock_self(void)
{
    return (uint64_t)(uintptr_t)&hy_locks_depth;
}

void hy_lock_wait(struct hy_lock *l);
void hy_lock_wake(struct hy_lock *l);

static inline bool hy_lock_is_mine(const struct hy_lock *l)
{
    return (__atomic_load_n(&l->word, __ATOMIC_RELAXED) & ~1ull) == hy_lock_self();
}

/* Must not be this thread's already. */
static inline void hy_lock_take(struct hy_lock *l)
{
    uint64_t none = 0;
    hy_locks_enter();
    if (HY_UNLIKELY(!__atomic_compare_exchange_n(&l->word, &none, hy_lock_self(), false,
                                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        hy_lock_wait(l);
}

static inline bool hy_lock_try(struct hy_lock *l)
{
    uint64_t none = 0;
    hy_locks_enter();
    if (__atomic_compare_exchange_n(&l->word, &none, hy_lock_self(), false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return true;
    hy_locks_leave();
    return false;
}

static inline void hy_lock_release(struct hy_lock *l)
{
    if (HY_UNLIKELY(__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) & 1))
        hy_lock_wake(l);
    hy_locks_leave();
}

/* Around fork: take it unless a handler of ours forks while this thread holds it; what was
 * interrupted then goes on, and releases it, in both processes. */
static inline void hy_lock_prefork(struct hy_lock *l)
{
    bool mine = hy_lock_is_mine(l);
    if (!mine)
        hy_lock_take(l);
    l->by_fork = !mine;
}

static inline void hy_lock_postfork(struct hy_lock *l)
{
    if (!l->by_fork)
        return;
    l->by_fork = false;
    hy_lock_release(l);
}

#endif
