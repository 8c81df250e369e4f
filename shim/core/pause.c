/* SPDX-License-Identifier: BSD-2-Clause
 * See pause.h. */
#include "core/pause.h"

#include <errno.h>
#include <pthread.h>

#include "base/guard.h"
#include "core/control.h"
#include "core/state.h"
#include "sys/emulator.h"
#include "sys/lock.h"
#include "sys/os.h"
#include "sys/thread.h"

#define SLOTS       4
#define STARTING    (-1)
#define ENDED       (1 << 30) /* beside its number: it is on its way out of the kernel */
#define PATIENCE_NS 2000000000ull
#define GONE_NS     500000000ull /* for the way out: its number may be another's by now */
#define FIRST_NAP   20000ull
#define LAST_NAP    1000000ull
#define ASK_NS      1000000000ull
/* Programs that change their user at every request (file servers) would have us make threads all
 * the time. */
#define OFTEN_NS 1000000000ull
#define OFTEN    8

static int32_t thread_slot[SLOTS]; /* 0: free */
static uint32_t pauses_begun;
static uint32_t bell;
static bool joins[SLOTS]; /* made by one that had left the program's table */
static bool lives_apart, shared_for_good;
static pthread_t main_thread;   /* 0: not known */
static bool thread_interrupted; /* there was a thread to begin again */
static uint64_t last_ns, not_before_ns;
static unsigned in_a_row;

/* Whose memory this is; zero in a child that has a copy, the parent's in one of vfork. */
static union {
    int32_t pid;
    char page[4096];
} own __attribute__((aligned(4096)));

enum errand_state { IDLE, CLAIMED, POSTED, SERVING, DONE, ABANDONED };
static struct {
    uint32_t state;
    void (*fn)(void *base, size_t bytes);
    void *base;
    size_t bytes;
} pause_errand;

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static bool change(uint32_t *word, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static int32_t slot_at(int i)
{
    return __atomic_load_n(&thread_slot[i], __ATOMIC_SEQ_CST);
}

static void slot_set(int i, int32_t to)
{
    __atomic_store_n(&thread_slot[i], to, __ATOMIC_SEQ_CST);
}

static void ring(void)
{
    __atomic_add_fetch(&bell, 1, __ATOMIC_SEQ_CST);
    os_wake_word(&bell);
    control_wake();
}

/* --- whose memory ----------------------------------------------------------------------- */

void pause_own_process(void)
{
    for (int i = 0; i < SLOTS; i++)
        slot_set(i, 0);
    pauses_begun = 0;
    lives_apart = shared_for_good = thread_interrupted = false;
    last_ns = not_before_ns = 0;
    in_a_row = 0;
    pause_errand.state = IDLE;
    int32_t pid = os_pid();
    main_thread = os_gettid() == pid ? pthread_self() : 0;
    __atomic_store_n(&own.pid, pid, __ATOMIC_RELEASE);
}

void pause_own_page(void)
{
    (void)os_wipe_on_fork(&own); /* before Linux 4.14 any child is taken for one of vfork */
    pause_own_process();
}

bool pause_memory_is_ours(void)
{
    int32_t pid = __atomic_load_n(&own.pid, __ATOMIC_ACQUIRE);
    return pid == 0 || pid == os_pid();
}

bool pause_is_copy(void)
{
    return __atomic_load_n(&own.pid, __ATOMIC_ACQUIRE) == 0;
}

static bool is_own_process(void)
{
    return own.pid != 0 && pause_memory_is_ours();
}

/* --- threads of ours --------------------------------------------------------------------- */

bool pause_wanted(void)
{
    return load(&pauses_begun) != 0 || runtime_is_sandboxed();
}

bool pause_may_start(void)
{
    return !pause_wanted() &&
           (not_before_ns == 0 || runtime_state() == HY_SERVING || os_now_ns() >= not_before_ns);
}

/* One that has long gone need not have been waited for. */
static bool slot_take(int i)
{
    int32_t was = slot_at(i);
    if (was != 0 && (was < 0 || !(was & ENDED) || os_thread_exists(was & ~ENDED)))
        return false;
    return __atomic_compare_exchange_n(&thread_slot[i], &was, STARTING, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

int pause_enlist(void)
{
    for (int i = 0; i < SLOTS; i++) {
        if (!slot_take(i))
            continue;
        joins[i] = os_table_apart();
        if (!pause_wanted()) /* whoever wants it from here on sees the place */
            return i;
        slot_set(i, 0);
        break;
    }
    return -1;
}

void pause_withdraw(int i)
{
    slot_set(i, 0);
}

void pause_began(int i)
{
    if (joins[i])
        os_table_join();
    slot_set(i, os_gettid());
}

void pause_ended(int i)
{
    slot_set(i, os_gettid() | ENDED);
}

void pause_leave_table(void)
{
    /* The emulated machine's time is not this one's, and QEMU has files of its own in it. */
    if (!__atomic_load_n(&shared_for_good, __ATOMIC_ACQUIRE) && !emulator_open())
        __atomic_store_n(&lives_apart, os_table_leave() == 0, __ATOMIC_RELEASE);
}

void pause_sleep(uint64_t ns)
{
    uint32_t heard = load(&bell);
    if (!pause_wanted() && load(&pause_errand.state) != POSTED)
        os_wait_word(&bell, heard, ns);
}

void pause_serve(void)
{
    if (!change(&pause_errand.state, POSTED, SERVING))
        return;
    pause_errand.fn(pause_errand.base, pause_errand.bytes);
    if (!change(&pause_errand.state, SERVING, DONE))
        __atomic_store_n(&pause_errand.state, IDLE, __ATOMIC_SEQ_CST);
    os_wake_word(&pause_errand.state);
}

/* --- the program's threads ----------------------------------------------------------------- */

static void wait_until_gone(int i, uint64_t until)
{
    uint64_t nap = FIRST_NAP, out_until = 0, now;
    int32_t is;
    while ((is = slot_at(i)) != 0) {
        now = os_now_ns();
        if (is > 0 && (is & ENDED)) {
            out_until = out_until ? out_until : now + GONE_NS;
            if (!os_thread_exists(is & ~ENDED) || now >= out_until) {
                slot_set(i, 0);
                return;
            }
        } else if (now >= until) {
            return;
        }
        os_sleep_ns(nap);
        nap = HY_MIN(2 * nap, (uint64_t)LAST_NAP);
    }
}

bool control_pause(void)
{
    int saved = errno;
    /* In a handler that has interrupted code of ours: they may be waiting for this thread. */
    if (hy_guarded() || hy_locks_held() || !is_own_process())
        return false;
    __atomic_add_fetch(&pauses_begun, 1, __ATOMIC_SEQ_CST);
    uint64_t until = os_now_ns() + PATIENCE_NS;
    for (int i = 0; i < SLOTS; i++)
        thread_interrupted |= slot_at(i) == STARTING || (slot_at(i) > 0 && !(slot_at(i) & ENDED));
    ring();
    for (int i = 0; i < SLOTS; i++)
        wait_until_gone(i, until);
    errno = saved;
    return true;
}

void control_resume(bool paused)
{
    int saved = errno;
    if (!paused || __atomic_sub_fetch(&pauses_begun, 1, __ATOMIC_SEQ_CST) != 0 ||
        !thread_interrupted || runtime_is_sandboxed())
        return;
    uint64_t now = os_now_ns();
    thread_interrupted = false;
    in_a_row = now - last_ns < OFTEN_NS ? in_a_row + 1 : 0;
    last_ns = now;
    not_before_ns = in_a_row < OFTEN ? 0 : now + OFTEN_NS;
    if (pause_may_start())
        control_begin_again();
    errno = saved;
}

void control_main_leaves(void)
{
    if (!is_own_process())
        return;
    bool paused = control_pause();
    __atomic_store_n(&shared_for_good, true, __ATOMIC_RELEASE);
    __atomic_store_n(&lives_apart, false, __ATOMIC_RELEASE);
    in_a_row = 0;
    control_resume(paused);
}

bool control_is_main(pthread_t thread)
{
    return main_thread != 0 && pthread_equal(thread, main_thread);
}

bool control_apart(void)
{
    return __atomic_load_n(&lives_apart, __ATOMIC_ACQUIRE);
}

bool control_ask(void (*fn)(void *base, size_t bytes), void *base, size_t bytes)
{
    uint64_t until = os_now_ns() + ASK_NS;
    if (!control_apart() || hy_guarded())
        return false;
    while (!change(&pause_errand.state, IDLE, CLAIMED)) {
        if (os_now_ns() >= until)
            return false;
        os_sleep_ns(FIRST_NAP);
    }
    pause_errand.fn = fn;
    pause_errand.base = base;
    pause_errand.bytes = bytes;
    __atomic_store_n(&pause_errand.state, POSTED, __ATOMIC_SEQ_CST);
    ring();
    for (uint32_t is; (is = load(&pause_errand.state)) != DONE;) {
        if (os_now_ns() >= until && (change(&pause_errand.state, POSTED, IDLE) ||
                                     change(&pause_errand.state, SERVING, ABANDONED)))
            return false;
        os_wait_word(&pause_errand.state, is, LAST_NAP);
    }
    __atomic_store_n(&pause_errand.state, IDLE, __ATOMIC_SEQ_CST);
    return true;
}
