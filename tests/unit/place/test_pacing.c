/* SPDX-License-Identifier: BSD-2-Clause
 * Whom a writer on PM holds up, and the fewest threads within 4 % of its own best. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>

#include <cmocka.h>

#include "classify/rules/traffic.h"
#include "place/rules/pacing.h"
#include "threads/rules/pacing_search.h"

static void a_writer_holds_up_who_suffers_most(void **state)
{
    const struct pacing_peer p[] = {{8, 1}, {0, 1.5}, {0, 5}, {0, 0}};
    struct pacing_victim v = pacing_find(p, 4, 0, false);

    (void)state;
    assert_true(v.any);
    assert_int_equal(v.index, 2);
    assert_true(v.loses > 3.1 && v.loses < 3.2); /* 4 x (8/9)^2 */
    /* 1 - 1/4.16 and 1 - 1/1.395: who told nothing loses nothing. */
    assert_true(v.lost > 1.03 && v.lost < 1.05);
    assert_true(pacing_hindered(p, 4, 2) > 4.1 && pacing_hindered(p, 4, 2) < 4.2);
    assert_true(pacing_hindered(p, 4, 0) == 1);
    /* Who does not write holds up nobody, nor does one who is alone. */
    for (unsigned i = 1; i < 4; i++)
        assert_false(pacing_find(p, 4, i, false).any);
    assert_false(pacing_find(p, 1, 0, false).any);
    assert_false(pacing_find(p, 4, 4, false).any);
}

static void several_writers_answer_for_their_parts(void **state)
{
    /* One of 20 writers alone could leave the queue full: all the same each has its part. */
    struct pacing_peer p[] = {{16, 1}, {4, 1}, {0, 2}};

    (void)state;
    assert_true(pacing_find(p, 3, 0, false).loses > pacing_find(p, 3, 1, false).loses);
    assert_true(pacing_find(p, 3, 1, false).any);
    p[1].writers = 0.5; /* its part, 3 %, is less than what it would give */
    assert_false(pacing_find(p, 3, 1, false).any);
    assert_true(pacing_find(p, 3, 1, true).any); /* but what has begun does not flap */
}

static void nonsense_paces_nobody(void **state)
{
    const struct pacing_peer p[] = {{8, 1}, {-5, -3}, {1e6, 0}, {0, 1}};

    (void)state;
    assert_false(pacing_find(p, 4, 0, false).any);
    assert_true(pacing_hindered(p, 4, 3) == 1);
}

static void one_window_changes_nothing(void **state)
{
    struct pacing_turn t = {0};

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_false(pacing_settle(&t, i % 2));
    assert_true(!pacing_settle(&t, true) || t.paced);
    while (!t.paced)
        (void)pacing_settle(&t, true);
    assert_false(pacing_settle(&t, false));
    assert_false(pacing_settle(&t, false));
    assert_false(pacing_settle(&t, true));
    assert_false(pacing_settle(&t, false));
    assert_false(pacing_settle(&t, false));
    assert_true(pacing_settle(&t, false));
    assert_false(t.paced);
}

/* --- what is told ------------------------------------------------------------------------ */

/* Lines of a program in one ms, streams, on one memory. */
static struct traffic traffic(double reads, double writes, double on_pm, double threads)
{
    const struct work k = {.compute_ns = 1e5,
                           .reads = reads,
                           .writes = writes,
                           .exposure = 0.1,
                           .foreseen = 1,
                           .threads = threads,
                           .pm_reads = on_pm,
                           .pm_writes = on_pm};
    struct machine_figures f;
    assert_int_equal(figures_default("optane", &f), 0);
    return traffic_of(&f, &k, work_time(&f, &k, on_pm, on_pm, threads).total_ns);
}

static void traffic_tells_writers_and_victims_apart(void **state)
{
    struct traffic writer = traffic(1e5, 1e5, 1, 8), reader = traffic(1e5, 0, 1, 8);
    struct traffic victim = traffic(1e5, 1e5, 0, 8), few = traffic(1e5, 1e5, 1, 4);

    (void)state;
    assert_true(writer.written == 0.5 && writer.ebw[HY_DRAM] == 0 && writer.ebw[HY_PM] > 0);
    assert_true(writer.writers > 4 && writer.writers <= 8 && few.writers < writer.writers);
    assert_true(writer.held == 1); /* it has nothing on DRAM */
    assert_true(reader.writers == 0 && reader.written == 0);
    assert_true(victim.writers == 0 && victim.held > 5 && victim.ebw[HY_PM] == 0);
}

/* Others fill PM: its threads wait there for most of the time, each with its place in the
 * controller. */
static void waiting_writers_count(void **state)
{
    struct work k = {.compute_ns = 1e5,
                     .reads = 1e3,
                     .writes = 1e3,
                     .exposure = 0.1,
                     .foreseen = 1,
                     .threads = 8};
    struct machine_figures f;

    (void)state;
    assert_int_equal(figures_default("optane", &f), 0);
    k.pm_reads = k.pm_writes = 1;
    assert_true(traffic_of(&f, &k, 1e6).writers < 1);
    k.waited_ns = 6e6;
    double all = traffic_of(&f, &k, 1e6).writers;
    assert_true(all >= 6 && all <= 8);
    k.writes = 0; /* who reads holds none of the writers' places */
    assert_true(traffic_of(&f, &k, 1e6).writers == 0);
    k.writes = 1e3;
    k.pm_reads = k.pm_writes = 0; /* it waits for DRAM */
    assert_true(traffic_of(&f, &k, 1e6).writers == 0);
    k.pm_reads = k.pm_writes = 0.5;
    double some = traffic_of(&f, &k, 1e6).writers;
    assert_true(some > 3 && some <= all);
}

/* --- how many ---------------------------------------------------------------------------- */

static double lu(void *ctx, unsigned n)
{
    /* Measured with 8, 4, 2 threads: 37.4, 37.8, 67.3 ms. */
    static const double ms[] = {0, 130, 67.3, 47, 37.8, 37.6, 37.5, 37.4, 37.4};
    const double *slower = ctx;
    return 1 / (ms[n] * (n < 8 ? *slower : 1));
}

static double model_of_others(void *ctx, unsigned n)
{
    (void)ctx;
    (void)n;
    return 1; /* as good as no model */
}

struct run {
    struct pacing_search s;
    struct regret purse;
    double now, lost, slower;
    double tries, others_lose; /* the first as the process's purse, if others lose nothing */
};

static void windows(struct run *r, unsigned n, threads_speed_fn model)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned k = pacing_search_count(&r->s);
        double rate = lu(&r->slower, k) / lu(&r->slower, 8);
        r->now += 1;
        r->lost += 1 - rate;
        r->s.others_lose = r->others_lose;
        r->tries += r->others_lose > 0 ? pacing_tries(r->s.gain) : REGRET_SHARE;
        (void)pacing_search_window(&r->s, &r->purse, r->tries / REGRET_SHARE, rate, 1, PACING_GIVES,
                                   model, &r->slower);
    }
}

static void finds_the_fewest_within_four_percent(void **state)
{
    const threads_speed_fn models[] = {lu, model_of_others};

    (void)state;
    for (int m = 0; m < 2; m++) {
        struct run r = {.slower = 1};
        pacing_search_begin(&r.s, 8);
        windows(&r, 20000, models[m]);
        assert_int_equal(r.s.count, 4);
        assert_int_equal(r.s.best, 8);
        assert_true(r.lost <= (PACING_GIVES + REGRET_SHARE) * r.now);
    }
}

static void an_empty_purse_tries_nothing(void **state)
{
    struct run r = {.slower = 1};

    (void)state;
    r.purse.spent_ns = 1e9;
    pacing_search_begin(&r.s, 8);
    windows(&r, 5000, lu);
    assert_int_equal(r.s.count, 8);
    assert_true(r.lost == 0);
}

/* What is lost at worst need not be in the purse first where others have lost as much already. */
static void much_evidence_is_tried_soon(void **state)
{
    static const double lose[] = {0.05, 0.5, 2};
    static const unsigned tried_by[] = {60, 24, 20};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(lose); i++) {
        struct run r = {.slower = 1, .others_lose = lose[i]};
        unsigned first = 0;
        pacing_search_begin(&r.s, 8);
        while (pacing_search_count(&r.s) == 8 && first++ < 1000)
            windows(&r, 1, lu);
        assert_true(first <= tried_by[i]);
        assert_int_equal(pacing_search_count(&r.s), 4);
    }
    struct run none = {.slower = 1};
    pacing_search_begin(&none.s, 8);
    windows(&none, 200, lu);
    assert_int_equal(pacing_search_count(&none.s), 8);
}

/* However much others lose and whatever the model says, at any moment no more is lost than pacing
 * may cost, and one stretch of a trial. */
static void what_it_costs_is_bounded(void **state)
{
    const threads_speed_fn models[] = {lu, model_of_others};

    (void)state;
    for (int m = 0; m < 2; m++)
        for (double slower = 1; slower < 100; slower *= 1.3) {
            struct run r = {.slower = slower, .others_lose = 10};
            pacing_search_begin(&r.s, 8);
            for (unsigned i = 0; i < 3000; i++) {
                windows(&r, 1, models[m]);
                assert_true(r.lost <= (PACING_GIVES + REGRET_SHARE) * r.now + 2);
            }
            assert_int_equal(r.s.count, slower > 1.04 ? 8 : 4);
        }
}

/* A program that makes its data at first: one thread is enough for that. */
static double light_at_first(void *ctx, unsigned n)
{
    const struct run *r = ctx;
    double one = 1;
    return r->now <= 2 ? 1 : lu(&one, n);
}

/* One was too few: the model is asked again, though it errs, and a purse in debt aims no higher. */
static void after_a_wrong_guess_comes_the_next(void **state)
{
    struct run r = {.slower = 1};

    (void)state;
    for (unsigned count = 8; count >= 7; count--) {
        pacing_search_begin(&r.s, 8);
        r.s.low = 1;
        r.s.count = count;
        for (int i = 0; i < 20; i++) {
            struct regret debts = {.spent_ns = 1};
            (void)pacing_search_window(&r.s, &debts, 0, 1, 1, PACING_GIVES,
                                       count == 8 ? lu : model_of_others, &r.slower);
        }
        assert_int_equal(r.s.trial.count, 4);
    }
}

static void a_guess_holds_for_all_windows_before_the_trial(void **state)
{
    struct run r = {.others_lose = 1};

    (void)state;
    pacing_search_begin(&r.s, 8);
    while (!r.s.trial.other && r.now < 100) {
        r.now++;
        r.s.others_lose = r.others_lose;
        (void)pacing_search_window(&r.s, &r.purse, 4 * r.now, 1, 1, PACING_GIVES, light_at_first,
                                   &r);
    }
    assert_true(r.now >= 3);
    assert_int_equal(r.s.trial.count, 4);
}

/* Half as many would be the next: but the model foresees a loss that is not in the purse. */
static void no_fewer_are_tried_than_the_purse_pays_for(void **state)
{
    struct run r = {.slower = 1};

    (void)state;
    for (int rich = 0; rich < 2; rich++) {
        pacing_search_begin(&r.s, 8);
        r.s.count = 7, r.s.others_lose = 100;
        thread_trial_base(&r.s.trial, 7);
        for (int i = 0; i < 50 && !r.s.trial.other; i++) {
            double left = rich ? 100 : 0.3;
            (void)pacing_search_window(&r.s, &(struct regret){0}, left / REGRET_SHARE, 1, 1,
                                       PACING_GIVES, lu, &r.slower);
        }
        assert_true(r.s.trial.other);
        assert_int_equal(r.s.trial.count, rich ? 3 : 4); /* 3 of 7: 20 % of 2.5 windows */
    }
}

static void what_has_become_slower_is_given_up(void **state)
{
    struct run r = {.slower = 1};

    (void)state;
    pacing_search_begin(&r.s, 8);
    windows(&r, 20000, lu);
    assert_int_equal(r.s.count, 4);
    r.slower = 1.5;
    windows(&r, 200000, lu);
    assert_int_equal(r.s.count, 8);
    pacing_search_stop(&r.s, &r.purse);
    assert_int_equal(pacing_search_count(&r.s), 0);
    assert_true(r.purse.aside_ns == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_holds_up_who_suffers_most),
        cmocka_unit_test(several_writers_answer_for_their_parts),
        cmocka_unit_test(nonsense_paces_nobody),
        cmocka_unit_test(one_window_changes_nothing),
        cmocka_unit_test(traffic_tells_writers_and_victims_apart),
        cmocka_unit_test(waiting_writers_count),
        cmocka_unit_test(finds_the_fewest_within_four_percent),
        cmocka_unit_test(an_empty_purse_tries_nothing),
        cmocka_unit_test(much_evidence_is_tried_soon),
        cmocka_unit_test(what_it_costs_is_bounded),
        cmocka_unit_test(after_a_wrong_guess_comes_the_next),
        cmocka_unit_test(a_guess_holds_for_all_windows_before_the_trial),
        cmocka_unit_test(no_fewer_are_tried_than_the_purse_pays_for),
        cmocka_unit_test(what_has_become_slower_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
