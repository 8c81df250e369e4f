/* SPDX-License-Identifier: BSD-2-Clause
 * The lock-step of virtual clocks with real threads and processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "machine/clock.h"

#define US      ((int64_t)1000000)
#define THREADS 6
#define STEPS   300

static struct emu_clock *machine;

struct actor {
    pthread_t thread;
    int slot, seed;
    int64_t time, seen[4];
};

static int start_machine(void **state)
{
    (void)state;
    machine =
        mmap(NULL, sizeof(*machine), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return machine == MAP_FAILED;
}

static int end_machine(void **state)
{
    (void)state;
    return munmap(machine, sizeof(*machine));
}

/* All slots are taken before the first one runs. */
static void play(struct actor *a, int n, void *(*run)(void *))
{
    for (int i = 0; i < n; i++) {
        a[i].seed = i + 1;
        assert_int_equal(emu_clock_join(machine, 0, &a[i].slot), 0);
    }
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&a[i].thread, NULL, run, &a[i]), 0);
    for (int i = 0; i < n; i++)
        pthread_join(a[i].thread, NULL);
}

/* Written only by the thread whose turn it is: without a lock. */
static struct {
    int64_t time;
    int slot;
} booked[THREADS * STEPS];
static int bookings;

static void *books(void *arg)
{
    struct actor *a = arg;
    unsigned x = (unsigned)a->seed;
    int64_t t = 0;

    emu_clock_begin(machine, a->slot);
    for (int i = 0; i < STEPS; i++) {
        t = emu_clock_turn(machine, a->slot, t);
        booked[bookings].time = t;
        booked[bookings++].slot = a->slot;
        x = x * 1103515245 + 12345;
        /* Often the same times: then the rule decides. */
        t = emu_clock_advance(machine, a->slot, t + (1 + x / 65536 % 3) * 10 * US, 20 * US);
    }
    emu_clock_leave(machine, a->slot);
    return NULL;
}

static void bookings_come_in_the_order_of_time(void **state)
{
    struct actor a[THREADS];
    int first[THREADS * STEPS];
    (void)state;

    for (int round = 0; round < 2; round++) {
        bookings = 0;
        play(a, THREADS, books);
        assert_int_equal(bookings, THREADS * STEPS);
        for (int i = 1; i < bookings; i++)
            assert_true(booked[i - 1].time <= booked[i].time);
        for (int i = 0; i < bookings; i++) {
            if (round == 0)
                first[i] = booked[i].slot;
            assert_int_equal(booked[i].slot, first[i]); /* the same each time */
        }
    }
    assert_int_equal(machine->unseen + machine->lost_runs, 0);
}

static _Atomic int64_t times[THREADS], furthest;

static void *runs_ahead(void *arg)
{
    struct actor *a = arg;
    int64_t t = 0, step = a->seed * 3 * US;

    emu_clock_begin(machine, a->slot);
    while (t < 3000 * US) {
        int64_t ahead;
        t = emu_clock_advance(machine, a->slot, t + step, 50 * US);
        times[a->seed - 1] = t;
        for (int i = 0; i < THREADS; i++)
            if ((ahead = t - times[i]) > furthest)
                furthest = ahead;
    }
    emu_clock_leave(machine, a->slot);
    return NULL;
}

static void nobody_gets_further_ahead_than_allowed(void **state)
{
    struct actor a[THREADS];
    (void)state;
    furthest = 0;
    memset((void *)times, 0, sizeof(times));
    play(a, THREADS, runs_ahead);
    /* The lookahead, a step of the last one that has not told it here yet, and its own. */
    assert_true(furthest > 0 && furthest <= (50 + 2 * 3 * THREADS) * US);
}

static int ends[2];
static _Atomic int finished;

/* One blocks with a word, one without, one computes unseen until the other two are done,
 * which thus have to find that out. */
static void *misbehaves(void *arg)
{
    struct actor *a = arg;
    char c;

    emu_clock_begin(machine, a->slot);
    if (a->seed == 1) {
        emu_clock_away(machine, a->slot, 0);
        (void)!read(ends[0], &c, 1);
        a->time = emu_clock_back(machine, a->slot, 0, -1);
    } else if (a->seed == 2) {
        (void)!read(ends[0], &c, 1);
        a->time = emu_clock_advance(machine, a->slot, US, 20 * US);
    } else if (a->seed == 3) {
        while (finished < 2)
            ;
        a->time = emu_clock_advance(machine, a->slot, US, 20 * US);
    } else {
        for (a->time = 0; a->time < 1000 * US;)
            a->time = emu_clock_advance(machine, a->slot, a->time + 10 * US, 20 * US);
        finished++;
        (void)!write(ends[1], "x", 1);
    }
    emu_clock_leave(machine, a->slot);
    return NULL;
}

static void blocked_ones_are_found_and_come_back_late(void **state)
{
    struct actor a[5];
    uint64_t unseen = machine->unseen, lost = machine->lost_runs;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    finished = 0;
    play(a, 5, misbehaves);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(machine->unseen - unseen, 1);
    assert_int_equal(machine->lost_runs - lost, 1);
    assert_int_equal(a[3].time, 1000 * US);
    assert_int_equal(a[4].time, 1000 * US);
    assert_true(a[2].time >= 900 * US); /* as it was taken for blocked until then */
}

/* Both are away at the same place; the first to come back sets the other's clock, which
 * what it reads later does not change. */
static void *meets(void *arg)
{
    struct actor *a = arg;

    emu_clock_begin(machine, a->slot);
    emu_clock_away(machine, a->slot, 77);
    if (a->seed == 1) {
        while (machine->thread[a[1].slot].wait_for != 77)
            ;
        a->seen[0] = emu_clock_back(machine, a->slot, 5 * US, 40 * US);
        emu_clock_release(machine, 77, a->seen[0], -1);
        a->seen[1] = emu_clock_floor(machine);
        finished = 1;
    } else {
        while (!finished)
            ;
        a->seen[0] = emu_clock_back(machine, a->slot, 9 * US, 900 * US);
    }
    emu_clock_leave(machine, a->slot);
    return NULL;
}

static void release_sets_the_clock_of_who_is_not_awake_yet(void **state)
{
    struct actor a[2];
    (void)state;
    finished = 0;
    play(a, 2, meets);
    assert_int_equal(a[0].seen[0], 40 * US);
    assert_int_equal(a[0].seen[1], 40 * US);
    assert_int_equal(a[1].seen[0], 40 * US);
}

/* A sleeper is not blocked: others wait for it where they come to its time. */
static void *dozes(void *arg)
{
    struct actor *a = arg;
    const struct timespec moment = {.tv_nsec = 80000000};

    emu_clock_begin(machine, a->slot);
    if (a->seed == 1) {
        emu_clock_doze(machine, a->slot, 100 * US);
        nanosleep(&moment, NULL);
        a->seen[0] = times[1];
        a->time = emu_clock_doze_end(machine, a->slot, 0, false);
    } else {
        for (a->time = 0; a->time < 1000 * US; times[1] = a->time)
            a->time = emu_clock_advance(machine, a->slot, a->time + 10 * US, 20 * US);
    }
    emu_clock_leave(machine, a->slot);
    return NULL;
}

static void sleepers_keep_their_time(void **state)
{
    struct actor a[2];
    uint64_t unseen = machine->unseen;
    (void)state;
    times[1] = 0;
    play(a, 2, dozes);
    assert_int_equal(a[0].time, 100 * US);
    assert_true(a[0].seen[0] <= 120 * US);
    assert_int_equal(machine->unseen, unseen);
}

#define LOOKS 20

static void moment(long ns)
{
    const struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

static int64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One looks at the other every 100 us, and takes its time. */
static void *looks(void *arg)
{
    struct actor *a = arg;
    int64_t t = 0;

    if (a->seed == 1) {
        emu_clock_begin(machine, a->slot);
        while (t < (LOOKS + 2) * 100 * US) {
            t = emu_clock_advance(machine, a->slot, t + 10 * US, 20 * US);
            times[0] = t;
        }
        emu_clock_leave(machine, a->slot);
        return NULL;
    }
    emu_clock_begin(machine, a->slot); /* others look whether this thread runs */
    for (int i = 1; i <= LOOKS; i++) {
        emu_clock_hold(machine, a->slot, i * 100 * US);
        while (emu_clock_held(machine, a->slot) < i * 100 * US)
            moment(i % 3 * 100000);
        for (int64_t begin = real_ns(); i % 4 == 0 && real_ns() - begin < 3000000;)
            ; /* busy; asleep it might be taken for blocked */
        if (times[0] - i * 100 * US > furthest)
            furthest = times[0] - i * 100 * US;
        a->seen[0] += times[0] >= (i * 100 - 10) * US; /* told here after the clock knows it */
    }
    emu_clock_leave(machine, a->slot);
    return NULL;
}

static void observers_hold_the_others(void **state)
{
    struct actor a[2] = {{.seed = 1}, {.seed = 2}};
    uint64_t unseen = machine->unseen;
    (void)state;

    furthest = times[0] = 0;
    /* It is there before the other one runs. */
    assert_int_equal(emu_clock_join(machine, 0, &a[0].slot), 0);
    assert_int_equal(emu_clock_observe(machine, 100 * US, &a[1].slot), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&a[i].thread, NULL, looks, &a[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(a[i].thread, NULL);
    assert_int_equal(a[1].seen[0], LOOKS);
    assert_in_range(furthest, 1, 30 * US);
    assert_int_equal(machine->unseen, unseen);
}

/* One that does not ask any more is left behind, and no loss; it comes back where the
 * others are. */
static void observers_that_sleep_hold_nobody(void **state)
{
    uint64_t unseen = machine->unseen;
    int slot, other;
    int64_t t = 0, before;
    (void)state;

    assert_int_equal(emu_clock_join(machine, 0, &slot), 0);
    emu_clock_begin(machine, slot);
    assert_int_equal(emu_clock_observe(machine, 100 * US, &other), 0);
    /* It is this thread, which is seen at work: a process that is stopped looks like that. */
    machine->thread[other].tid = getppid();
    machine->thread[other].pid = getppid();
    while (t < 500 * US)
        t = emu_clock_advance(machine, slot, t + 10 * US, 20 * US);
    assert_int_equal(machine->thread[other].state, EMU_AWAY);
    before = emu_clock_floor(machine);
    assert_int_equal(emu_clock_held(machine, other), before);
    assert_int_equal(machine->thread[other].state, EMU_ACTIVE);
    assert_int_equal(machine->unseen, unseen);
    emu_clock_leave(machine, slot);
    emu_clock_leave(machine, other);
}

/* With all others away the clock stands still, whatever an observer waits for. */
static void observers_move_no_clock(void **state)
{
    int slot, other;
    int64_t t;
    (void)state;

    assert_int_equal(emu_clock_join(machine, 0, &slot), 0);
    emu_clock_begin(machine, slot);
    t = emu_clock_advance(machine, slot, machine->newest, 20 * US);
    assert_int_equal(emu_clock_observe(machine, t + 1000 * US, &other), 0);
    assert_int_equal(emu_clock_held(machine, other), t);
    emu_clock_away(machine, slot, 0);
    assert_int_equal(emu_clock_held(machine, other), t);
    assert_int_equal(emu_clock_back(machine, slot, t, -1), t);
    /* Nor when it has been there. */
    emu_clock_hold(machine, other, t);
    assert_int_equal(emu_clock_held(machine, other), t);
    assert_true(emu_clock_mine(machine, other, gettid()));
    emu_clock_leave(machine, other);
    assert_false(emu_clock_mine(machine, other, gettid()));
    emu_clock_leave(machine, slot);
}

static _Atomic bool over;

static void *release_always(void *unused)
{
    (void)unused;
    while (!over)
        emu_clock_release(machine, 1, machine->newest, -1);
    return NULL;
}

/* A thread that comes back while it is being released: the releaser's time is not set after its
 * own. It would be asleep until a later time than it shows, and nobody's turn would come. */
static void a_release_that_comes_late_changes_no_time(void **state)
{
    enum { WAITS = 200000 };
    pthread_t releaser;
    int64_t t = 0;
    int slot;
    (void)state;

    assert_int_equal(emu_clock_join(machine, 0, &slot), 0);
    emu_clock_begin(machine, slot);
    over = false;
    assert_int_equal(pthread_create(&releaser, NULL, release_always, NULL), 0);
    for (int i = 0; i < WAITS; i++) {
        emu_clock_away(machine, slot, 1);
        t = emu_clock_back(machine, slot, t, -1);
        t = emu_clock_turn(machine, slot, t + US);
        for (int look = 0; look < 4; look++)
            assert_int_equal(machine->thread[slot].time, t);
    }
    over = true;
    pthread_join(releaser, NULL);
    emu_clock_leave(machine, slot);
}

/* Two threads of a process that is killed: both slots are found empty. */
static void a_killed_process_holds_nobody_up(void **state)
{
    int slot, mine, status;
    int64_t t = 0;
    pid_t pid;
    (void)state;

    assert_int_equal(emu_clock_join(machine, 0, &mine), 0);
    emu_clock_begin(machine, mine);
    pid = fork();
    if (pid == 0) {
        if (emu_clock_join(machine, 0, &slot) < 0 || emu_clock_join(machine, 0, &slot) < 0)
            _exit(1);
        emu_clock_begin(machine, slot);
        for (;;)
            pause();
    }
    while (machine->thread[mine].state == EMU_ACTIVE && emu_clock_floor(machine) == 0 && t < 20) {
        const struct timespec moment = {.tv_nsec = 5000000};
        nanosleep(&moment, NULL);
        t++;
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    for (t = 0; t < 1000 * US;)
        t = emu_clock_advance(machine, mine, t + 50 * US, 20 * US);
    emu_clock_leave(machine, mine);
    for (int i = 0; i < EMU_THREADS; i++)
        assert_int_equal(machine->thread[i].state, EMU_FREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bookings_come_in_the_order_of_time),
        cmocka_unit_test(nobody_gets_further_ahead_than_allowed),
        cmocka_unit_test(blocked_ones_are_found_and_come_back_late),
        cmocka_unit_test(release_sets_the_clock_of_who_is_not_awake_yet),
        cmocka_unit_test(sleepers_keep_their_time),
        cmocka_unit_test(observers_hold_the_others),
        cmocka_unit_test(observers_that_sleep_hold_nobody),
        cmocka_unit_test(observers_move_no_clock),
        cmocka_unit_test(a_release_that_comes_late_changes_no_time),
        cmocka_unit_test(a_killed_process_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, start_machine, end_machine);
}
