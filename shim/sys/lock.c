/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/lock.h"

#include <linux/futex.h>
#include <pthread.h>

#include "sys/raw.h"

#define SPINS 100

__thread int hy_locks_depth __attribute__((tls_model("initial-exec")));

/* --- cancelled at any moment ----------------------------------------------------------------- */

__thread uint8_t hy_cancel_any __attribute__((tls_model("initial-exec")));
static __thread int held_back __attribute__((tls_model("initial-exec")));
static int (*set_type)(int type, int *old);

/* The type and not the state: the handler of glibc 2.36, once the signal is on its way, looks at
 * the type alone. Nothing that we call meanwhile is a place to be cancelled at. */
HY_COLD void hy_cancel_hold(void)
{
    if (held_back++ == 0)
        (void)set_type(PTHREAD_CANCEL_DEFERRED, NULL);
}

HY_COLD void hy_cancel_let(void)
{
    /* 0: a handler that came between has turned it on. */
    if (held_back > 0 && --held_back == 0)
        (void)set_type(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}

HY_COLD void hy_cancel_note(bool any_moment, int (*setter)(int type, int *old))
{
    __atomic_store_n(&set_type, setter, __ATOMIC_RELAXED);
    held_back = 0;
    hy_cancel_any = any_moment;
}

/* --- waiting -----------------------------------------------------------------------------------
 */

/* The half of the word that the kernel compares: that with bit 0. Two owners that agree in it
 * both have somebody waiting, and wake. */
static uint32_t *futex_of(struct hy_lock *l)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (uint32_t *)&l->word;
#else
    return (uint32_t *)&l->word + 1;
#endif
}

static bool take_if_free(struct hy_lock *l, uint64_t as)
{
    uint64_t none = 0;
    return __atomic_load_n(&l->word, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&l->word, &none, as, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

HY_COLD void hy_lock_wait(struct hy_lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        if (take_if_free(l, hy_lock_self()))
            return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    /* Once asleep, it is not known who else is: whoever takes it then wakes the next. */
    while (!take_if_free(l, hy_lock_self() | 1)) {
        uint64_t w = __atomic_load_n(&l->word, __ATOMIC_RELAXED);
        if (w == 0 ||
            (!(w & 1) && !__atomic_compare_exchange_n(&l->word, &w, w | 1, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)))
            continue;
        (void)raw4(SYS_futex, futex_of(l), FUTEX_WAIT_PRIVATE, (uint32_t)(w | 1), NULL);
    }
}

HY_COLD void hy_lock_wake(struct hy_lock *l)
{
    (void)raw3(SYS_futex, futex_of(l), FUTEX_WAKE_PRIVATE, 1);
}
