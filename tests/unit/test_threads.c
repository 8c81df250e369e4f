/* SPDX-License-Identifier: BSD-2-Clause
 * Thread counts: Algorithm 2 on the paper's kinds of curves, and the online search on
 * the same curves with noise. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

#include <cmocka.h>

#include "decide/threads.h"

#define CPUS 20u

/* Speed of t threads: alone `t`, never above the medium's `knee`, and each thread beyond
 * it costs `drop` of the speed (queues in front of PM). */
static double speed(double knee, double drop, unsigned t)
{
    double s = t < knee ? t : knee;
    return t > knee ? s * (1 - drop * (t - knee)) : s;
}

static void algorithm2_follows_the_paper(void **state)
{
    double time[CPUS];
    (void)state;
    /* Linear: the step from 10 to 11 is 10 %, the next is less. */
    for (unsigned i = 0; i < CPUS; i++)
        time[i] = 1.0 / (i + 1);
    assert_int_equal(threads_algorithm2(time, 10, 0.0999), 10);
    assert_int_equal(threads_algorithm2(time, CPUS, 0.0999), 11);
    /* FT on PM: four (section IV-C). */
    for (unsigned i = 0; i < CPUS; i++)
        time[i] = 1.0 / speed(4, 0, i + 1);
    assert_int_equal(threads_algorithm2(time, CPUS, 0.1), 4);
    /* One thread only: none is better. */
    for (unsigned i = 0; i < CPUS; i++)
        time[i] = 7.0 + i;
    assert_int_equal(threads_algorithm2(time, CPUS, 0.1), 1);
    assert_int_equal(threads_algorithm2(time, 1, 0.1), 1);
    assert_int_equal(threads_algorithm2(time, 0, 0.1), 0);
    time[3] = 0;
    assert_int_equal(threads_algorithm2(time, CPUS, 0.1), 0);
    time[3] = NAN;
    assert_int_equal(threads_algorithm2(time, CPUS, 0.1), 0);
}

static void fewest_is_within_the_slack(void **state)
{
    double time[CPUS] = {0};
    (void)state;
    assert_int_equal(threads_fewest(time, CPUS, 0.05), 0);
    for (double knee = 1; knee <= CPUS; knee += 0.5) {
        double best = 1e9;
        unsigned t;
        for (unsigned i = 0; i < CPUS; i++) {
            time[i] = 1.0 / speed(knee, 0.01, i + 1);
            best = HY_MIN(best, time[i]);
        }
        t = threads_fewest(time, CPUS, 0.05);
        assert_true(time[t - 1] <= 1.05 * best);
        assert_true(t == 1 || time[t - 2] > 1.05 * best);
    }
    /* What was not measured is not chosen. */
    for (unsigned i = 0; i < CPUS; i++)
        time[i] = i == 3 || i == 11 ? 12.0 - i : 0;
    assert_int_equal(threads_fewest(time, CPUS, 0.05), 12);
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

/* Runs a search to its rest; the speed at its choice over the best there is. */
static double searched(struct threads_search *s, double knee, double drop, double part)
{
    double best = 0;
    unsigned windows = 0;
    while (!s->resting) {
        unsigned t = threads_search_count(s);
        assert_in_range(t, 1, CPUS);
        threads_search_rate(s, speed(knee, drop, t) * noise(part));
        assert_true(++windows <= THREADS_PROBES);
    }
    for (unsigned t = 1; t <= CPUS; t++)
        best = HY_MAX(best, speed(knee, drop, t));
    return speed(knee, drop, threads_search_count(s)) / best;
}

static void search_finds_the_best_within_ten_percent(void **state)
{
    double worst = 1;
    (void)state;
    for (double drop = 0; drop <= 0.021; drop += 0.02)
        for (double knee = 1; knee <= CPUS; knee += 0.5)
            for (unsigned first = 1; first <= CPUS; first++)
                for (unsigned repeat = 0; repeat < 10; repeat++) {
                    struct threads_search s;
                    double part;
                    threads_search_begin(&s, first, CPUS, 0);
                    part = searched(&s, knee, drop, repeat ? 0.01 : 0);
                    worst = HY_MIN(worst, part);
                }
    print_message("worst choice: %.3f of the best speed\n", worst);
    assert_true(worst > 0.90);
}

static void mean_waits_until_it_rests(void **state)
{
    struct threads_mean m = {0};
    double rate = 0;
    unsigned n = 0;
    (void)state;
    /* Steady: three windows. */
    while (!threads_mean_add(&m, 5, 2, &rate))
        n++;
    assert_int_equal(n, 2);
    assert_true(rate == 2.5);
    /* What is late in one window comes in the next. */
    for (unsigned round = 0; round < 20; round++) {
        n = 1;
        while (!threads_mean_add(&m, n % 2 ? 60 : 140, 100, &rate))
            n++;
        assert_in_range(n, 4, THREADS_MEAN_MOST);
        assert_true(rate > 0.95 && rate < 1.05);
    }
    /* It ends, whatever comes. */
    for (n = 1; !threads_mean_add(&m, pow(2, n), 1, &rate); n++)
        assert_in_range(n, 1, THREADS_MEAN_MOST);
    /* A window without time is none. */
    for (n = 0; n < 100; n++)
        assert_false(threads_mean_add(&m, 1, 0, &rate) || threads_mean_add(&m, NAN, 1, &rate));
}

/* The rate with all threads, known before, saves the way up and misleads nobody. */
static void what_all_threads_reach_helps(void **state)
{
    double worst = 1;
    unsigned with = 0, without = 0;
    (void)state;
    for (double drop = 0; drop <= 0.021; drop += 0.02)
        for (double knee = 1; knee <= CPUS; knee += 0.5)
            for (unsigned first = 1; first <= CPUS; first++) {
                struct threads_search s;
                double part;
                threads_search_begin(&s, first, CPUS, speed(knee, drop, CPUS));
                part = searched(&s, knee, drop, 0.01);
                worst = HY_MIN(worst, part);
                with += s.probes;
                threads_search_begin(&s, first, CPUS, 0);
                (void)searched(&s, knee, drop, 0.01);
                without += s.probes;
            }
    print_message("worst choice: %.3f of the best speed; probes %u, without %u\n", worst, with,
                  without);
    assert_true(worst > 0.90);
    assert_true(with < without);
    /* The first of all: nothing is known better. */
    struct threads_search s;
    threads_search_begin(&s, CPUS, CPUS, 3);
    threads_search_rate(&s, 4);
    assert_true(s.best == CPUS && !s.resting && s.next < CPUS);
}

static void search_prefers_fewer_threads(void **state)
{
    struct threads_search s;
    (void)state;
    for (unsigned first = 1; first <= CPUS; first++) {
        threads_search_begin(&s, first, CPUS, 0);
        (void)searched(&s, 4, 0, 0);
        assert_in_range(threads_search_count(&s), 4, 5);
    }
}

static void search_rests_and_begins_anew(void **state)
{
    struct threads_search s;
    (void)state;
    threads_search_begin(&s, 4, CPUS, 0);
    (void)searched(&s, 4, 0.01, 0);
    for (int i = 0; i < 100; i++) {
        threads_search_rate(&s, 4 * noise(0.1));
        assert_true(s.resting);
    }
    /* One window off is nothing; another phase is. */
    threads_search_rate(&s, 40);
    assert_true(s.resting);
    for (int i = 0; i < 3; i++)
        threads_search_rate(&s, 1);
    assert_false(s.resting);
    assert_true(searched(&s, 15, 0, 0) > 0.9);
    /* One that changes all the time: ever longer rests. */
    unsigned probed = 0;
    for (int i = 0; i < 10000; i++) {
        probed += !s.resting;
        threads_search_rate(&s, i / 4 % 2 ? 1 : 40);
    }
    assert_true(probed < 10 * THREADS_PROBES);
    /* A program that does nothing is not judged. */
    threads_search_begin(&s, 4, CPUS, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(threads_search_rate(&s, 0), 4);
    assert_int_equal(threads_search_rate(&s, NAN), 4);
}

static void search_keeps_its_limits(void **state)
{
    struct threads_search s;
    (void)state;
    threads_search_begin(&s, 0, 0, 0);
    assert_int_equal(threads_search_count(&s), 1);
    threads_search_rate(&s, 5);
    assert_true(s.resting && s.next == 1);
    threads_search_begin(&s, 5000, 3000, 0);
    assert_int_equal(threads_search_count(&s), THREADS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithm2_follows_the_paper),
        cmocka_unit_test(fewest_is_within_the_slack),
        cmocka_unit_test(knee_is_bandwidth_over_demand),
        cmocka_unit_test(search_finds_the_best_within_ten_percent),
        cmocka_unit_test(mean_waits_until_it_rests),
        cmocka_unit_test(what_all_threads_reach_helps),
        cmocka_unit_test(search_prefers_fewer_threads),
        cmocka_unit_test(search_rests_and_begins_anew),
        cmocka_unit_test(search_keeps_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
