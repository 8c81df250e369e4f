/* SPDX-License-Identifier: BSD-2-Clause
 * The DRAM that all share is divided by what it brings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/division.h"

#define MB       HY_MIB
#define BUDGET   (64 * MB)
#define ROUNDS   3000
#define RUN_NS   10000000000ull
#define MOST_IDS 12u

static struct division d;

/* Its hottest part, `hot` eighths, gets nearly all accesses. */
static struct division_party hot_part(uint32_t id, uint64_t bytes, unsigned hot, uint32_t slowdown,
                                      uint64_t held)
{
    struct division_party p = {.id = id,
                               .cls = HY_CLASS_BANDWIDTH,
                               .held = held,
                               .bytes = bytes,
                               .takes = bytes,
                               .now = slowdown,
                               .run_ns = RUN_NS,
                               .move_ns = 4000};
    uint32_t cold[DIVISION_POINTS];

    for (unsigned k = 0; k < DIVISION_POINTS; k++)
        cold[k] = k < hot ? 1000 - 950 * k / hot : 50 - 50 * (k - hot) / DIVISION_POINTS;
    division_curve(slowdown, cold, p.time);
    return p;
}

static uint32_t any(uint32_t below)
{
    return (uint32_t)random() % below;
}

/* Anything that a slot may say, sense or not. */
static struct division_party nonsense(uint32_t id)
{
    struct division_party p = {.id = id,
                               .cls = (enum hy_class)any(HY_CLASS_MAX),
                               .held = any(3) ? any(64) * MB : UINT64_MAX >> any(40),
                               .bytes = any(3) ? any(90) * MB + any(4096) : UINT64_MAX >> any(64),
                               .takes = any(2) ? any(64) * MB : UINT64_MAX >> any(64),
                               .now = any(2) ? any(20000) : UINT32_MAX,
                               .weight = any(2) ? any(1000) : UINT32_MAX,
                               .run_ns = any(2) ? RUN_NS : UINT64_MAX >> any(64),
                               .move_ns = any(3) ? 4000 : UINT32_MAX};

    for (unsigned k = 0; any(4) && k < DIVISION_POINTS; k++)
        p.time[k] = any(4) ? any(20000) : UINT32_MAX;
    return p;
}

static unsigned some_parties(struct division_party *p)
{
    unsigned n = 2 + any(MOST_IDS - 1);

    for (unsigned i = 0; i < n; i++)
        p[i] = any(2) ? nonsense(i)
                      : hot_part(i, (1 + any(60)) * MB, 1 + any(7), 1000 + any(9000), any(40) * MB);
    return n;
}

static uint64_t sum(const uint64_t *v, unsigned n)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < n; i++)
        all += v[i];
    return all;
}

static void shares_stay_within_the_budget(void **state)
{
    struct division_party p[MOST_IDS];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = some_parties(p);
        uint64_t free = BUDGET;
        division_make(BUDGET, p, n, &d);
        assert_true(sum(d.share, n) <= BUDGET);
        for (unsigned i = 0; i < n; i++) {
            uint64_t held = HY_MIN(p[i].held, BUDGET);
            free -= HY_MIN(free, held);
            assert_true(d.ask[i] <= held);
            assert_true(d.ask[i] == 0 || d.lack[i] == 0);
        }
        assert_true(sum(d.lack, n) == d.lacking);
        assert_true(sum(d.ask, n) <= d.lacking - HY_MIN(free, d.lacking));
    }
}

static void the_order_of_slots_changes_nothing(void **state)
{
    static struct division other;
    struct division_party p[MOST_IDS], q[MOST_IDS];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = some_parties(p), turn = any(n);
        for (unsigned i = 0; i < n; i++)
            q[(i + turn) % n] = p[i];
        /* Over-full claims are cut in the order of the slots. */
        uint64_t held = 0;
        for (unsigned i = 0; i < n; i++)
            held += HY_MIN(p[i].held, BUDGET);
        if (held > BUDGET)
            continue;
        division_make(BUDGET, p, n, &d);
        division_make(BUDGET, q, n, &other);
        for (unsigned i = 0; i < n; i++) {
            assert_true(d.share[i] == other.share[(i + turn) % n]);
            assert_true(d.ask[i] == other.ask[(i + turn) % n]);
        }
    }
}

static void who_counts_nothing_keeps_what_it_holds(void **state)
{
    struct division_party p[] = {
        {.id = 0, .cls = HY_CLASS_BANDWIDTH, .held = 60 * MB, .bytes = 60 * MB},
        hot_part(1, 60 * MB, 1, 9000, 4 * MB)};

    (void)state;
    division_make(BUDGET, p, 2, &d);
    assert_int_equal(d.ask[0], 0);
    assert_true(division_most(&d, p, 0) == UINT64_MAX);
    /* With counts that say that it gains little, it gives. */
    p[0] = hot_part(0, 60 * MB, 1, 1200, 60 * MB);
    division_make(BUDGET, p, 2, &d);
    assert_true(d.ask[0] > 3 * MB && d.lack[1] > 3 * MB);
    assert_true(division_most(&d, p, 0) < 60 * MB);
}

static void dram_goes_where_it_brings_most(void **state)
{
    /* Both hot parts fit; the rest of the first, which holds all, is colder than the second's. */
    struct division_party p[] = {hot_part(0, 64 * MB, 2, 4000, 64 * MB),
                                 hot_part(1, 64 * MB, 4, 4000, 0)};

    (void)state;
    division_make(BUDGET, p, 2, &d);
    assert_true(d.share[0] >= 16 * MB && d.share[1] >= 32 * MB);
    assert_true(d.ask[0] == d.lack[1]);
}

static void what_is_held_does_not_swing(void **state)
{
    struct division_party p[] = {hot_part(0, 64 * MB, 7, 4000, 40 * MB),
                                 hot_part(1, 64 * MB, 7, 4400, 24 * MB)};

    (void)state;
    division_make(BUDGET, p, 2, &d); /* a tenth better is not enough */
    assert_int_equal(d.lacking, 0);
    p[1] = hot_part(1, 64 * MB, 7, 8000, 24 * MB);
    division_make(BUDGET, p, 2, &d);
    assert_true(d.lack[1] > 0);
    /* Carried out, it stays. */
    p[0].held -= d.ask[0];
    p[1].held += d.ask[0];
    division_make(BUDGET, p, 2, &d);
    assert_int_equal(d.lacking, 0);
}

static void nobody_is_given_what_it_would_leave_empty(void **state)
{
    struct division_party p[] = {hot_part(0, 64 * MB, 1, 4000, 60 * MB),
                                 hot_part(1, 64 * MB, 6, 9000, 4 * MB)};

    (void)state;
    p[1].takes = 0;
    division_make(BUDGET, p, 2, &d);
    assert_int_equal(d.ask[0], 0);
    p[1].takes = 5 * MB;
    division_make(BUDGET, p, 2, &d);
    assert_true(d.ask[0] == 5 * MB && d.lack[1] == 5 * MB);
}

/* A build beside a database, both bound by memory: sixteen compilers are one group, and need
 * little. What they tell does not take the database's part. */
static void many_processes_have_one_part(void **state)
{
    struct division_party p[17];

    (void)state;
    p[0] = hot_part(0, 60 * MB, 7, 3000, 60 * MB);
    for (unsigned i = 1; i < 17; i++)
        p[i] = hot_part(i, 60 * MB, 7, 9000, 0);
    division_make(BUDGET, p, 17, &d);
    assert_true(d.share[0] < 8 * MB); /* by themselves, they are many */
    for (unsigned i = 1; i < 17; i++)
        p[i].group = 3;
    division_make(BUDGET, p, 17, &d);
    assert_true(d.share[0] >= 28 * MB);
    for (unsigned i = 1; i < 17; i++) {
        p[i] = hot_part(i, MB, 7, 9000, 0);
        p[i].group = (int32_t)i;
    }
    division_make(BUDGET, p, 17, &d);
    assert_true(d.share[0] >= 44 * MB);
}

static void moves_are_paid_for(void **state)
{
    struct division_party p[] = {hot_part(0, 60 * MB, 7, 1500, 60 * MB),
                                 hot_part(1, 60 * MB, 1, 9000, 4 * MB)};

    (void)state;
    p[1].run_ns = 1000; /* it may end as soon as it came */
    division_make(BUDGET, p, 2, &d);
    assert_int_equal(d.lacking, 0);
    p[1].run_ns = RUN_NS;
    division_make(BUDGET, p, 2, &d);
    assert_true(d.lacking > 0);
    p[1].move_ns = 1000000;
    p[1].run_ns = RUN_NS / 10;
    division_make(BUDGET, p, 2, &d);
    assert_int_equal(d.lacking, 0);
}

static void classes_come_before_slopes(void **state)
{
    struct division_party p[] = {hot_part(0, 64 * MB, 2, 4000, 64 * MB),
                                 hot_part(1, 64 * MB, 7, 2000, 0)};

    (void)state;
    p[0].cls = HY_CLASS_CPU;
    division_make(BUDGET, p, 2, &d);
    assert_true(d.share[1] > 50 * MB);
    /* Its floor: an eighth of an equal part. */
    assert_true(d.share[0] >= BUDGET / 16);
}

static void everybody_keeps_a_floor(void **state)
{
    struct division_party p[MOST_IDS];

    (void)state;
    for (unsigned i = 0; i < MOST_IDS; i++)
        p[i] = hot_part(i, 64 * MB, 4, i ? 9000 : 1001, i ? 4 * MB : 20 * MB);
    division_make(BUDGET, p, MOST_IDS, &d);
    assert_true(d.ask[0] > 0);
    assert_true(d.share[0] >= BUDGET / MOST_IDS / 8);
}

/* Whatever the others tell, an honest one loses what it holds beyond an equal part, and of that
 * part what hardly costs it anything. */
static void who_lies_takes_no_equal_part(void **state)
{
    struct division_party p[MOST_IDS];
    double h[DIVISION_POINTS + 1];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = some_parties(p), who = any(n);
        uint64_t held = (1 + any(40)) * MB, bytes = 64 * MB;
        p[who] = hot_part(who, bytes, 1 + any(7), 1100 + any(9000), held);
        division_hull(p[who].time, 1000000, h);
        division_make(BUDGET, p, n, &d);
        double at[2] = {(double)HY_MIN(held, BUDGET / n), (double)(held - d.ask[who])}, time[2];
        for (int i = 0; i < 2; i++) {
            unsigned k = HY_MIN((unsigned)(at[i] * 8 / (double)bytes), 7u);
            time[i] = h[k] - (at[i] * 8 / (double)bytes - k) * (h[k] - h[k + 1]);
        }
        assert_true(time[1] <= 1.0101 * time[0]);
    }
    /* All that can be told: nothing is ever enough, and everything is worth it. */
    struct division_party q[] = {hot_part(0, 64 * MB, 7, 4000, 60 * MB),
                                 hot_part(1, 64 * MB, 7, UINT32_MAX, 0)};
    for (unsigned k = 0; k < DIVISION_POINTS; k++)
        q[1].time[k] = UINT32_MAX - k;
    q[1].weight = UINT32_MAX;
    q[1].move_ns = 0;
    q[1].run_ns = UINT64_MAX;
    division_make(BUDGET, q, 2, &d);
    assert_true(d.ask[0] > 20 * MB && q[0].held - d.ask[0] > 31 * MB);
    /* It is asked again and again, and the other never takes any. */
    for (int round = 0; round < 1000; round++) {
        q[0].held -= d.ask[0];
        division_make(BUDGET, q, 2, &d);
    }
    assert_true(d.ask[0] == 0 && q[0].held > 31 * MB);
    /* Whatever it has lost, by a look that erred, it may take again while it is free. */
    q[0].held = 5 * MB;
    division_make(BUDGET, q, 2, &d);
    assert_true(d.right[0] > 31 * MB && division_most(&d, q, 0) == d.right[0]);
}

/* Its own word counts for its own part, as with nice(1). */
static void who_is_nice_gives_more(void **state)
{
    struct division_party p[] = {hot_part(0, 64 * MB, 7, 4000, 32 * MB),
                                 hot_part(1, 64 * MB, 7, 4000, 32 * MB)};

    (void)state;
    p[1].weight = 10000;
    division_make(BUDGET, p, 2, &d);
    assert_true(d.ask[0] <= 1 * MB);
    p[1].weight = 100;
    p[0].weight = 25;
    division_make(BUDGET, p, 2, &d);
    assert_true(d.ask[0] > 20 * MB);
}

static void more_weight_never_brings_less(void **state)
{
    struct division_party p[MOST_IDS];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned n = some_parties(p), who = any(n);
        uint64_t last = 0;
        for (uint32_t weight = 25; weight <= 6400; weight *= 2) {
            p[who].weight = weight;
            division_make(BUDGET, p, n, &d);
            assert_true(d.share[who] >= last);
            last = d.share[who];
        }
    }
    struct division_party q[] = {hot_part(0, 64 * MB, 6, 4000, 64 * MB),
                                 hot_part(1, 64 * MB, 6, 4000, 0)};
    division_make(BUDGET, q, 2, &d);
    assert_true(d.share[1] < 20 * MB);
    q[1].weight = 400;
    division_make(BUDGET, q, 2, &d);
    assert_true(d.share[1] > 28 * MB);
}

static void curves_are_made_convex(void **state)
{
    double h[DIVISION_POINTS + 1];
    const uint32_t stairs[] = {9000, 9000, 9000, 5000, 5500, 5000, 1, UINT32_MAX};

    (void)state;
    division_hull(stairs, 1000000, h);
    assert_true(h[0] > 8999 && h[DIVISION_POINTS] < 1001);
    for (unsigned k = 1; k < DIVISION_POINTS; k++) {
        assert_true(h[k - 1] >= h[k] && h[k] >= 1000);
        assert_true(h[k - 1] - h[k] >= h[k] - h[k + 1] - 0.001);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct division_party p = nonsense(0);
        division_hull(p.time, 1000000, h);
        for (unsigned k = 1; k < DIVISION_POINTS; k++)
            assert_true(h[k - 1] - h[k] >= h[k] - h[k + 1] - 0.001 && h[k] <= 1000000);
    }
}

static void alone_nothing_changes(void **state)
{
    struct division_party p = hot_part(0, 64 * MB, 2, 4000, 10 * MB);

    (void)state;
    division_make(BUDGET, &p, 1, &d);
    assert_true(d.share[0] == BUDGET);
    assert_int_equal(d.ask[0], 0);
    assert_true(division_most(&d, &p, 0) == UINT64_MAX);
    division_make(BUDGET, &p, 0, &d);
    assert_int_equal(d.lacking, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_stay_within_the_budget),
        cmocka_unit_test(the_order_of_slots_changes_nothing),
        cmocka_unit_test(who_counts_nothing_keeps_what_it_holds),
        cmocka_unit_test(dram_goes_where_it_brings_most),
        cmocka_unit_test(what_is_held_does_not_swing),
        cmocka_unit_test(nobody_is_given_what_it_would_leave_empty),
        cmocka_unit_test(many_processes_have_one_part),
        cmocka_unit_test(moves_are_paid_for),
        cmocka_unit_test(classes_come_before_slopes),
        cmocka_unit_test(everybody_keeps_a_floor),
        cmocka_unit_test(who_lies_takes_no_equal_part),
        cmocka_unit_test(who_is_nice_gives_more),
        cmocka_unit_test(more_weight_never_brings_less),
        cmocka_unit_test(curves_are_made_convex),
        cmocka_unit_test(alone_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
