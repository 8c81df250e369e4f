/* SPDX-License-Identifier: BSD-2-Clause
 * The one thread of ours. It loads memkind for a process that has grown (never
 * from inside malloc: the loader's lock), then once a second looks at the
 * registry, gives back free memory and measures mappings. All signals are
 * blocked in it; it allocates only under the guard. */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/guard.h"
#include "runtime/classify.h"
#include "runtime/internal.h"
#include "runtime/migrate.h"
#include "runtime/observe.h"
#include "runtime/planned.h"
#include "runtime/record.h"
#include "runtime/threadcap.h"
#include "runtime/trace.h"
#include "service/heap/heap.h"
#include "service/maps.h"
#include "sys/emulator.h"
#include "sys/log.h"
#include "sys/os.h"

#define HOUSE_NS      1000000000ull /* between two housekeepings, at least */
#define LOOK_NS       200000000ull /* between two looks whether the program's last thread has gone */
#define LAST_LOOK_NS  10000000ull  /* the same, once main has */
#define STACK_BYTES   ((size_t)1 << 20)
#define DECAY_BYTES   ((size_t)256 << 20) /* given back a tick at most */
#define MEASURE_PAGES ((size_t)128 << 10) /* looked at a tick at most */
/* A process that engaged in its constructor gets the thread only when it has
 * lived so long or grown so large. */
#define LATE_NS       1000000000ull
#define LATE_BYTES    (16 * HY_MIB)
#define THREADS_BYTES (1 * HY_MIB) /* the same for one that makes threads */
#define FORK_WAIT_MS  1000
#define GRACE_NS      2000000ull
#define POKE_EVERY    16 /* slow allocations between two looks at the clock */

static uint8_t running;  /* this process has the thread */
static uint8_t tried;    /* do not try again after a failure */
static uint64_t born_ns; /* first poke */
static uint32_t forks;   /* under way in this process */
static uint8_t loading;  /* memkind is being loaded: forks wait */

/* What the program freed of its first memory lies in the next allocator, where
 * nobody asks for it any more. */
static void trim_next(void)
{
    static unsigned ticks;
    if (hy_config.set.start == 0 || hy_config.set.dram_allocator == HY_DRAM_NEXT)
        return;
    ticks++;
    if ((ticks & (ticks - 1)) == 0) /* 1, 2, 4, 8 ... seconds after */
        next_trim();
}

/* Not faster than this for a short HYBRID_INTERVAL: memory given back too early is paid for. */
static void keep_house(void)
{
    static uint64_t last_ns;
    uint64_t now = os_now_ns();
    if (now - last_ns < HOUSE_NS)
        return;
    last_ns = now;
    trim_next();
    heap_decay(HY_DRAM, DECAY_BYTES);
    heap_decay(HY_PM, DECAY_BYTES);
    maps_measure(MEASURE_PAGES);
}

static void tick(void)
{
    if (runtime_state() != HY_STEERING)
        return;
    observe_tell();
    policy_tick();
    planned_tick();
    threadcap_tick();
    migrate_tick();
    keep_house();
    if (hy_config.set.dram_allocator == HY_DRAM_NEXT)
        steer_next_measure();
}

/* Sleep for a tick. false: the program's last thread has ended (main left by
 * pthread_exit), and the process waits only for us. */
static bool sleep_a_tick(void)
{
    for (uint64_t left = hy_config.set.interval; left > 0 && runtime_state() == HY_STEERING;) {
        uint64_t part = HY_MIN(HY_MIN(left, LOOK_NS), classify_period_ns());
        if (emulator_open())
            part = emulator_sleep_ns(part, LOOK_NS); /* not in HY_MIN, which would sleep twice */
        else
            os_sleep_ns(part);
        left -= HY_MIN(left, part);
        record_tick();
        classify_tick();
        trace_tick();
        while (os_main_ended()) {
            if (os_thread_count() <= 2 + migrate_threads()) /* the zombie of main, and ours */
                return false;
            os_sleep_ns(LAST_LOOK_NS);
        }
    }
    return true;
}

static void *control_main(void *unused)
{
    sigset_t none;
    (void)unused;
    hy_guard_enter(); /* what we call must not come back into the heaps */
    (void)emulator_open();
    emulator_ignore_thread();
    if (runtime_state() == HY_ENGAGING) {
        __atomic_store_n(&loading, 1, __ATOMIC_SEQ_CST);
        control_wait_for_forks();
        engage_now();
        __atomic_store_n(&loading, 0, __ATOMIC_SEQ_CST);
    }
    if (record_wanted()) { /* from the first moment on, not after a window */
        record_tick();
        classify_tick();
    }
    while (runtime_state() == HY_STEERING && sleep_a_tick())
        tick();
    emulator_let_go();
    /* If no other thread is left, exit() runs in this one: as the program's. */
    hy_guard_leave();
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return NULL;
}

bool control_start_thread(void *(*fn)(void *), size_t stack)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    bool ok = false;

    hy_guard_enter();
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) == 0) {
        if (pthread_attr_init(&attr) == 0) {
            pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
            pthread_attr_setstacksize(&attr, stack);
            ok = next_pthread_create()(&thread, &attr, fn, NULL) == 0;
            pthread_attr_destroy(&attr);
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    hy_guard_leave();
    return ok;
}

static void start_once(void)
{
    if (__atomic_exchange_n(&tried, 1, __ATOMIC_ACQ_REL))
        return;
    if (control_start_thread(control_main, STACK_BYTES))
        __atomic_store_n(&running, 1, __ATOMIC_RELEASE);
    else
        log_info("no thread can be started; limits are kept, but nothing is adapted");
}

void control_engage(void)
{
    if (!runtime_change_state(HY_WATCH, HY_ENGAGING))
        return;
    /* The common machine with one memory: no thread only to find that out. */
    if (hy_config.set.pm.kind == HY_PM_AUTO && topology_single_node("/sys")) {
        runtime_go_passive("this machine has one kind of memory");
        return;
    }
    start_once();
    if (!control_running())
        runtime_go_passive("no thread can be started to load memkind");
}

unsigned runtime_program_threads(void)
{
    unsigned all = os_thread_count(), ours = control_running() + migrate_threads();
    return all > ours ? all - ours : all;
}

bool control_running(void)
{
    return __atomic_load_n(&running, __ATOMIC_ACQUIRE) != 0;
}

void control_begin(void)
{
    if (record_wanted() && runtime_state() == HY_STEERING) {
        start_once();
        record_await_counts();
    }
}

void control_poke(void)
{
    static uint32_t calls;
    if (HY_LIKELY(__atomic_load_n(&tried, __ATOMIC_RELAXED)) || hy_guarded())
        return;
    /* An emulated machine's second is a long time, and its programs are small. */
    if (policy_used() >= LATE_BYTES || emulator_open() || record_wanted() || trace_wanted()) {
        start_once();
        return;
    }
    if (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % POKE_EVERY)
        return;
    uint64_t now = os_now_ns();
    if (!born_ns)
        born_ns = now;
    if (now - born_ns >= LATE_NS)
        start_once();
}

void runtime_before_thread(void)
{
    enum hy_state state = runtime_state();
    if (state == HY_WATCH)
        watch_look();
    /* One with data and threads is worth a look, however young. */
    else if (state == HY_STEERING && HY_UNLIKELY(!__atomic_load_n(&tried, __ATOMIC_RELAXED)) &&
             !hy_guarded() && policy_used() >= THREADS_BYTES && threadcap_possible())
        start_once();
}

/* A fork in the middle of loading memkind would leave the child half a loader:
 * whoever comes first is waited for. A fork waits a second at most, as its thread
 * may hold the loader's lock that the loading needs. */
void control_prefork(void)
{
    for (int i = 0; i < FORK_WAIT_MS; i++) {
        __atomic_add_fetch(&forks, 1, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&loading, __ATOMIC_SEQ_CST))
            return;
        __atomic_sub_fetch(&forks, 1, __ATOMIC_SEQ_CST);
        os_sleep_ns(1000000);
    }
    __atomic_add_fetch(&forks, 1, __ATOMIC_SEQ_CST);
}

void control_postfork_parent(void)
{
    __atomic_sub_fetch(&forks, 1, __ATOMIC_SEQ_CST);
}

void control_loaded(void)
{
    if (!__atomic_exchange_n(&loading, 0, __ATOMIC_SEQ_CST))
        return; /* the constructor's thread is the only one */
    os_sleep_ns(GRACE_NS);
    control_wait_for_forks();
}

void control_wait_for_forks(void)
{
    while (__atomic_load_n(&forks, __ATOMIC_SEQ_CST) != 0)
        os_sleep_ns(100000);
}

void control_postfork_child(void)
{
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&tried, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&forks, 0, __ATOMIC_SEQ_CST);
    born_ns = 0;
}
