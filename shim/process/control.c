/* SPDX-License-Identifier: BSD-2-Clause
 * The one thread of ours. It begins placement for a process that has grown, opens memkind and
 * readies PM (nothing of that is malloc's work: files, /proc, the loader's lock), then once a
 * second looks at the registry, gives back free memory and measures mappings. All signals are
 * blocked in it; it allocates only under the guard. */
#include <pthread.h>
#include <signal.h>

#include "base/guard.h"
#include "classifier.h"
#include "core/control.h"
#include "core/pause.h"
#include "core/purse.h"
#include "core/state.h"
#include "heap/heap.h"
#include "heap/supply.h"
#include "llc/share.h"
#include "migrator.h"
#include "place/floor.h"
#include "place/maps.h"
#include "place/planned.h"
#include "place/policy.h"
#include "place/steer.h"
#include "process/process.h"
#include "record/record.h"
#include "report/observe.h"
#include "report/trace.h"
#include "settings/settings.h"
#include "sys/dl.h"
#include "sys/emulator.h"
#include "sys/filter.h"
#include "sys/lock.h"
#include "sys/log.h"
#include "sys/os.h"
#include "sys/thread.h"
#include "threadcap.h"

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
/* A registry that is full, or being decided, takes a second or two. */
#define JOIN_NS 3000000000ull

static uint8_t running; /* this process has the thread */
static bool begun;      /* this process, or one that it was forked from, has had a thread of ours */
static uint32_t joined; /* it has taken part in the registry, if it can */
static uint8_t tried;   /* do not try again after a failure */
static uint64_t born_ns; /* first poke */
static uint32_t forks;   /* under way in this process */
static uint8_t loading;  /* memkind is being loaded: forks wait */
static uint32_t wakes;   /* by control_wake; what the thread sleeps on */

static bool is_due(uint64_t *last_ns, uint64_t now)
{
    if (now - *last_ns < HOUSE_NS)
        return false;
    *last_ns = now;
    return true;
}

/* Not faster than this for a short HYBRID_INTERVAL: memory given back too early is paid for. How
 * long memory lies unused is a matter of the program's own time. */
static void keep_house(void)
{
    static uint64_t kept_ns, decayed_ns;
    if (is_due(&kept_ns, os_now_ns())) {
        heap_all_resident(os_locks_future());
        maps_measure(MEASURE_PAGES);
    }
    if (is_due(&decayed_ns, emulator_clock_ns())) {
        heap_decay(HY_DRAM, DECAY_BYTES);
        heap_decay(HY_PM, DECAY_BYTES);
    }
}

static void *control_main(void *unused);

static void *(*begins[8])(void *); /* by its place */

static void *thread_main(void *arg)
{
    int slot = (int)(intptr_t)arg;
    dl_thread_is_ours();
    os_thread_as_usual();
    pause_began(slot);
    (void)begins[slot](NULL);
    pause_ended(slot);
    return NULL;
}

bool control_start_thread(void *(*fn)(void *), size_t stack)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    bool ok = false;
    int slot = pause_enlist();

    if (slot < 0)
        return false;
    begins[slot] = fn;
    __atomic_store_n(&begun, true, __ATOMIC_RELAXED);
    hy_guard_enter();
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) == 0) {
        if (pthread_attr_init(&attr) == 0) {
            pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
            pthread_attr_setstacksize(&attr, stack);
            ok = next_pthread_create()(&thread, &attr, thread_main, (void *)(intptr_t)slot) == 0;
            pthread_attr_destroy(&attr);
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    if (!ok)
        pause_withdraw(slot);
    hy_guard_leave();
    return ok;
}

static bool start_once(void)
{
    if (!pause_may_start() || !runtime_lets_threads() || !malloc_is_for_threads() ||
        __atomic_load_n(&tried, __ATOMIC_ACQUIRE) || !pause_memory_is_ours() ||
        __atomic_exchange_n(&tried, 1, __ATOMIC_ACQ_REL))
        return true; /* a child that has its parent's memory leaves the thread to its parent */
    __atomic_store_n(&running, 1, __ATOMIC_RELEASE); /* before it, which may end at once */
    if (control_start_thread(control_main, STACK_BYTES))
        return true;
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    if (!pause_wanted()) {
        log_info("no thread can be started; limits are kept, but nothing is adapted");
        return false;
    }
    /* The program is about to change what threads inherit: later. */
    __atomic_store_n(&tried, 0, __ATOMIC_RELEASE);
    return true;
}

bool control_start(void)
{
    if (!os_calls_begin())
        return true;
    bool ok = start_once();
    os_calls_end();
    return ok;
}

/* After unshare(CLONE_NEWPID) the kernel lets nobody make a thread: no fault, so nothing is said.
 */
void control_begin_again(void)
{
    if (runtime_state() == HY_STEERING && !control_start())
        log_info("nothing is adapted from now on, since the program changed its rights");
}

/* --- its work ------------------------------------------------------------------------------ */

void control_wake(void)
{
    __atomic_add_fetch(&wakes, 1, __ATOMIC_SEQ_CST);
    if (control_running())
        os_wake_word(&wakes);
}

/* --- its life ------------------------------------------------------------------------------ */

static void tick(void)
{
    if (runtime_state() != HY_STEERING)
        return;
    observe_publish();
    policy_tick();
    floor_tick();
    planned_tick();
    threadcap_tick();
    llc_tick();
    migrate_tick();
    keep_house();
    if (hy_config.set.dram_allocator == HY_DRAM_NEXT)
        steer_next_measure();
}

/* What a young program does is not known yet, and it may end soon: it is looked at after a
 * sixteenth of the time that it has been placed for, up to HYBRID_INTERVAL. So however short it
 * is, and however long, there are as many looks to each doubling of its life. */
#define LOOKS       16u
#define SHORTEST_NS 10000000ull /* on an emulated machine, where all is smaller, a tenth */

static uint64_t thread_since_ns;

uint64_t control_interval_ns(void)
{
    uint64_t shortest = emulator_open() ? SHORTEST_NS / 10 : SHORTEST_NS;
    uint64_t age = emulator_clock_ns() - thread_since_ns;
    return HY_MIN(HY_MAX(age / LOOKS, shortest), hy_config.set.interval);
}

/* Until somebody wakes us; how long it was. */
static uint64_t doze(uint64_t ns, uint32_t seen)
{
    uint64_t start = os_now_ns();
    os_wait_word(&wakes, seen, ns);
    return os_now_ns() - start;
}

/* Sleep for a tick. false: the program's last thread has ended (main left by
 * pthread_exit), and the process waits only for us. */
static bool sleep_a_tick(void)
{
    for (uint64_t left = control_interval_ns(); left > 0 && runtime_state() == HY_STEERING;) {
        uint64_t part = HY_MIN(HY_MIN(left, LOOK_NS), classify_period_ns());
        uint32_t seen = __atomic_load_n(&wakes, __ATOMIC_SEQ_CST);
        await_serve(); /* what cannot wait for the tick */
        if (emulator_open())
            part = emulator_sleep_word(part, LOOK_NS, &wakes, seen);
        else
            part = doze(part, seen);
        if (pause_wanted())
            return true;
        pause_serve();
        left -= HY_MIN(left, part);
        record_tick();
        classify_tick();
        trace_tick();
        while (os_main_ended() && !pause_wanted()) {
            if (os_thread_count() <= 2 + migrate_threads()) /* the zombie of main, and ours */
                return false;
            os_sleep_ns(LAST_LOOK_NS);
        }
    }
    return true;
}

/* It begins again as it was; what has descriptors is closed by the thread that has them. */
static void end_for_pause(void)
{
    classify_pause();
    llc_pause();
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&tried, 0, __ATOMIC_RELEASE);
}

static void *control_main(void *unused)
{
    sigset_t none;
    (void)unused;
    hy_guard_enter(); /* what we call must not come back into the heaps */
    policy_thread_is_ours();
    (void)emulator_open();
    pause_leave_table();
    emulator_ignore_thread();
    if (thread_since_ns == 0)
        thread_since_ns = emulator_clock_ns();
    (void)purse_run_ns(); /* its time begins */
    windows_begin();
    if (runtime_state() == HY_SERVING && !pause_wanted())
        engage_now();
    heap_all_resident(os_locks_future());
    if (runtime_state() == HY_STEERING) {
        policy_join();
        threadcap_joined();
    }
    __atomic_store_n(&joined, 1, __ATOMIC_SEQ_CST);
    os_wake_word(&joined);
    if (record_wanted()) { /* from the first moment on, not after a window */
        record_tick();
        classify_tick();
    }
    bool alone = false;
    while (runtime_state() == HY_STEERING && !pause_wanted() && !alone) {
        alone = !sleep_a_tick();
        if (!alone)
            tick();
    }
    emulator_let_go();
    enum hy_state state = runtime_state();
    if (!alone && (state == HY_STEERING || state == HY_SERVING)) {
        end_for_pause();
        hy_guard_leave();
        return NULL;
    }
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    /* If no other thread is left, exit() runs in this one: as the program's. */
    hy_guard_leave();
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return NULL;
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

bool control_joins(void)
{
    if (emulator_open() || !policy_has_registry())
        return false;
    (void)control_start();
    if (!control_running())
        return false;
    for (uint64_t until = os_now_ns() + JOIN_NS;
         !__atomic_load_n(&joined, __ATOMIC_ACQUIRE) && os_now_ns() < until;)
        os_wait_word(&joined, 0, JOIN_NS);
    return true;
}

void control_begin(void)
{
    if (record_wanted() && runtime_state() == HY_STEERING) {
        (void)control_start();
        record_await_counts();
    }
}

/* A process that serves itself from DRAM begins to be placed; one that was placed from its
 * beginning is worth the thread when it has lived so long or grown so large. */
static bool worth_it(void)
{
    static uint32_t calls;
    if (runtime_state() == HY_SERVING)
        return policy_grown() >= hy_config.set.start;
    if (runtime_state() != HY_STEERING)
        return false;
    /* An emulated machine's second is a long time, and its programs are small. */
    if (policy_grown() >= LATE_BYTES || emulator_open() || record_wanted() || trace_wanted())
        return true;
    if (__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % POKE_EVERY)
        return false;
    uint64_t now = os_now_ns();
    if (!born_ns)
        born_ns = now;
    return now - born_ns >= LATE_NS;
}

/* In a sandbox no thread is begun, and none may ask for the time: the strict mode takes the counter
 * away that the vDSO reads. */
void control_poke(void)
{
    if (HY_LIKELY(__atomic_load_n(&tried, __ATOMIC_RELAXED)) || hy_guarded() || hy_locks_held() ||
        runtime_is_sandboxed())
        return;
    if (worth_it())
        (void)control_start();
}

void runtime_before_thread(void)
{
    enum hy_state state = runtime_state();
    if (HY_LIKELY(__atomic_load_n(&tried, __ATOMIC_RELAXED)) || hy_guarded() || hy_locks_held())
        return;
    /* One with data and threads is worth a look, however young; one with an allocator of its own
     * grows by mappings only. */
    if (state == HY_SERVING
            ? worth_it()
            : state == HY_STEERING && policy_used() >= THREADS_BYTES && threadcap_possible())
        (void)control_start();
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

static void wait_for_forks(void)
{
    while (__atomic_load_n(&forks, __ATOMIC_SEQ_CST) != 0)
        os_sleep_ns(100000);
}

void control_load_begins(void)
{
    if (!control_running())
        return; /* the constructor's thread is the only one */
    __atomic_store_n(&loading, 1, __ATOMIC_SEQ_CST);
    wait_for_forks();
}

void control_load_ends(void)
{
    if (!__atomic_exchange_n(&loading, 0, __ATOMIC_SEQ_CST))
        return;
    os_sleep_ns(GRACE_NS);
    wait_for_forks();
}

bool control_has_begun(void)
{
    return __atomic_load_n(&begun, __ATOMIC_RELAXED);
}

bool control_loading(void)
{
    return __atomic_load_n(&loading, __ATOMIC_SEQ_CST) != 0;
}

void control_postfork_child(void)
{
    pause_own_process();
    os_calls_child();
    __atomic_store_n(&running, 0, __ATOMIC_RELEASE);
    joined = 0;
    __atomic_store_n(&tried, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&forks, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&loading, 0, __ATOMIC_SEQ_CST);
    born_ns = 0;
}
