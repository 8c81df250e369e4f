/* SPDX-License-Identifier: BSD-2-Clause
 * Thread counts: Algorithm 2 on the paper's kinds of curves, and the search while a program runs on
 * the same curves with noise. What a search may cost: test_regret.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

#include <cmocka.h>

#include "threads/rules/threads.h"

#define CPUS 20u

/* Speed of t threads: alone `t`, never above the medium's `knee`, and each thread beyond
 * it costs `drop` of the speed (queues in front of PM). */
static double speed(double knee, double drop, unsigned t)
{
    double s = t < knee ? t : knee;
    return t > knee ? s * (1 - drop * (t - knee)) : s;
}

static void knee_is_bandwidth_over_demand(void **state)
{
    (void)state;
    assert_int_equal(threads_knee(13e9, 4e9, CPUS), 4);
    assert_int_equal(threads_knee(12e9, 4e9, CPUS), 3);
    assert_int_equal(threads_knee(12e9, 40e9, CPUS), 1);
    assert_int_equal(threads_knee(12e9, 1e6, CPUS), CPUS);
    assert_int_equal(threads_knee(12e9, 0, CPUS), CPUS);
    assert_int_equal(threads_knee(0, 1e9, CPUS), CPUS);
    assert_int_equal(threads_knee(NAN, 1e9, 0), 1);
    assert_int_equal(threads_knee(INFINITY, 1e-300, CPUS), CPUS);
}

static uint64_t seed = 1;

static double noise(double part)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return 1 + part * ((double)(seed >> 11) * 0x1p-52 - 1);
}

/* --- a program under the search ------------------------------------------------------- */

struct program {
    double knee, drop, noise;
    double late; /* part of a window's lines that are counted in the next */
    double owed;
    unsigned period; /* the last two windows of so many are nearly empty, the next two make up */
    struct threads_search search;
    struct regret purse;
    double now;
    unsigned tries[CPUS + 1], few, events[THREADS_GIVEN_UP + 1];
};

static double model(void *ctx, unsigned count)
{
    const struct program *p = ctx;
    return HY_MIN((double)count, p->knee);
}

static double in_turns(const struct program *p)
{
    static const double share[] = {1.45, 1.4, 0.2, 0.25};
    unsigned at = p->period ? (unsigned)(p->now / 1e6) % p->period : 2;

    if (at < 2)
        return share[at];
    return p->period && at + 2 >= p->period ? share[at + 4 - p->period] : 1;
}

static void begin(struct program *p)
{
    threads_search_begin(&p->search, CPUS);
}

static void run(struct program *p, unsigned windows)
{
    for (unsigned i = 0; i < windows; i++) {
        unsigned n = threads_search_count(&p->search);
        double did = 1e6 * speed(p->knee, p->drop, n) / speed(p->knee, p->drop, CPUS);
        did *= in_turns(p);
        double late = p->late * noise(1) * did, seen = did - late + p->owed;
        enum threads_event e;
        p->owed = late;
        p->now += 1e6;
        assert_in_range(n, 1, CPUS);
        p->few += n < CPUS;
        e = threads_search_window(&p->search, &p->purse, p->now, seen * noise(p->noise), 1e6, model,
                                  p);
        p->events[e]++;
        if (e == THREADS_TRIED || e == THREADS_FOUND || e == THREADS_ENDED)
            p->tries[p->search.tried]++;
    }
}

static void search_begins_when_it_can_pay(void **state)
{
    struct program p = {.knee = 4, .drop = 0.02};
    (void)state;
    begin(&p);
    run(&p, 199);
    assert_int_equal(p.few, 0);
    run(&p, 101);
    assert_true(p.few > 0);
}

static void search_finds_what_gains(void **state)
{
    double worst = 1;
    (void)state;
    for (double drop = 0.01; drop <= 0.021; drop += 0.01)
        for (double knee = 1; knee <= 10; knee += 0.5)
            for (unsigned repeat = 0; repeat < 10; repeat++) {
                struct program p = {.knee = knee,
                                    .drop = drop,
                                    .noise = repeat ? 0.01 : 0,
                                    .late = repeat > 5 ? 0.3 : 0};
                double best = speed(knee, drop, (unsigned)ceil(knee)), part;
                begin(&p);
                run(&p, 8000);
                part = speed(knee, drop, p.search.best) / best;
                worst = HY_MIN(worst, part);
            }
    print_message("worst choice: %.3f of the best speed\n", worst);
    assert_true(worst > 0.90);
}

/* A stretch with fewer that the program's own pause falls into is no worse for it. */
static void pauses_of_the_program_are_not_the_fault_of_fewer(void **state)
{
    (void)state;
    for (unsigned period = 7; period <= 23; period++) {
        struct program p = {.knee = 4, .drop = 0.02, .noise = 0.02, .period = period};
        begin(&p);
        run(&p, 4000);
        assert_true(p.search.best < CPUS);
        assert_in_range(p.events[THREADS_ENDED], 0, 2);
    }
}

/* What is kept looks better by then, but all threads might be better still. */
static void a_long_stretch_ends_when_the_program_turns(void **state)
{
    struct thread_trial t = {0};
    struct regret purse = {0};
    double now = 1e10;
    (void)state;
    thread_trial_base(&t, CPUS);
    thread_trial_next(&t, CPUS / 2, 1, 256);
    for (unsigned i = 0; i < 200 && !(t.other && t.windows >= 20); i++, now += 1e6)
        thread_trial_window(&t, &purse, now, thread_trial_count(&t) < CPUS ? 1.2e6 : 1e6, 1e6);
    assert_int_equal(thread_trial_count(&t), CPUS / 2);
    thread_trial_window(&t, &purse, now, 2e6, 1e6);
    assert_int_equal(thread_trial_count(&t), CPUS);
}

/* The first neighbour is slower: that is all that is tried, and after it comes a rest. */
static void search_stops_after_the_first_neighbour(void **state)
{
    struct program p = {.knee = 10};
    (void)state;
    begin(&p);
    run(&p, 40); /* now it is clear what will be tried */
    p.knee = 20;
    run(&p, 230);
    assert_int_equal(p.events[THREADS_ENDED], 1);
    assert_int_equal(p.tries[10], 1);
    assert_int_equal(p.few, 2);
    assert_int_equal(p.search.stage, THREADS_RESTS);
    /* Rests get longer. */
    run(&p, 20000);
    assert_in_range(p.events[THREADS_ENDED], 2, 9);
    assert_true(p.few < 100);
}

static void search_goes_in_small_steps(void **state)
{
    struct program p = {.knee = 3, .drop = 0.01};
    unsigned before = CPUS;
    (void)state;
    begin(&p);
    for (unsigned i = 0; i < 8000; i++) {
        unsigned n;
        run(&p, 1);
        n = threads_search_count(&p.search);
        if (n == CPUS || n == before)
            continue;
        /* Never below half of what proved as fast, and nothing that is predicted to lose. */
        assert_true(n >= (p.search.best + 1) / 2 && n >= 3);
        before = n;
    }
    assert_int_equal(p.search.best, 3);
}

static void what_was_found_is_given_up_when_it_is_slower(void **state)
{
    struct program p = {.knee = 4, .drop = 0.02};
    (void)state;
    begin(&p);
    run(&p, 4000);
    assert_int_equal(p.search.stage, THREADS_KEPT);
    assert_int_equal(p.events[THREADS_FOUND], 1);
    p.knee = 20; /* another phase */
    run(&p, 300);
    assert_int_equal(p.events[THREADS_GIVEN_UP], 1);
    assert_int_equal(threads_search_count(&p.search), CPUS);
}

static void search_stops_at_once(void **state)
{
    struct program p = {.knee = 4, .drop = 0.02};
    (void)state;
    begin(&p);
    while (threads_search_count(&p.search) == CPUS)
        run(&p, 1);
    threads_search_stop(&p.search, &p.purse);
    assert_int_equal(threads_search_count(&p.search), CPUS);
    assert_true(p.purse.aside_ns == 0);
    /* Goes to and fro: ever longer rests. */
    p.few = 0;
    for (unsigned i = 0; i < 2000; i++) {
        run(&p, 10);
        if (i % 4 == 0)
            threads_search_stop(&p.search, &p.purse);
    }
    assert_true(p.few < 100);
}

static void search_keeps_its_limits(void **state)
{
    struct threads_search s;
    struct program p = {.knee = 1};
    struct regret purse = {0};
    (void)state;
    threads_search_begin(&s, 0);
    for (unsigned i = 0; i < 1000; i++)
        (void)threads_search_window(&s, &purse, 1e6 * i, 1, 1e6, model, &p);
    assert_int_equal(threads_search_count(&s), 1);
    threads_search_begin(&s, 3000);
    assert_int_equal(threads_search_count(&s), THREADS_MAX);
    /* A program that waits tells nothing, and windows without time are none. */
    threads_search_begin(&s, CPUS);
    for (unsigned i = 0; i < 1000; i++) {
        (void)threads_search_window(&s, &purse, 1e6 * i, 0, 1e6, model, &p);
        (void)threads_search_window(&s, &purse, 1e6 * i, 1, 0, model, &p);
        (void)threads_search_window(&s, &purse, 1e6 * i, NAN, 1e6, model, &p);
        assert_int_equal(threads_search_count(&s), CPUS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knee_is_bandwidth_over_demand),
        cmocka_unit_test(search_begins_when_it_can_pay),
        cmocka_unit_test(search_finds_what_gains),
        cmocka_unit_test(pauses_of_the_program_are_not_the_fault_of_fewer),
        cmocka_unit_test(a_long_stretch_ends_when_the_program_turns),
        cmocka_unit_test(search_stops_after_the_first_neighbour),
        cmocka_unit_test(search_goes_in_small_steps),
        cmocka_unit_test(what_was_found_is_given_up_when_it_is_slower),
        cmocka_unit_test(search_stops_at_once),
        cmocka_unit_test(search_keeps_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
