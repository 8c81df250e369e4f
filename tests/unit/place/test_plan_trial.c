/* SPDX-License-Identifier: BSD-2-Clause
 * A plan that does not hold what it promised is given up, one that does is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place/rules/plan_trial.h"

#define WINDOW_NS 1e6
#define LINES     20000.0 /* of a window */
#define WINDOWS   100     /* of the recorded run */

static struct machine_figures figures;

static int setup(void **state)
{
    (void)state;
    return figures_default("optane", &figures);
}

/* `lines` are read and written, `pm` of them on PM. */
static struct window window_with(double lines, double pm)
{
    struct window w = {0};
    window_set(&w, WINDOW_elapsed_ns, (uint64_t)WINDOW_NS);
    window_set(&w, WINDOW_busy_ns, (uint64_t)(8 * WINDOW_NS));
    window_set(&w, WINDOW_threads, 8);
    window_set(&w, WINDOW_stall_ns, (uint64_t)(6 * WINDOW_NS));
    window_set(&w, WINDOW_reads, (uint64_t)(lines / 2));
    window_set(&w, WINDOW_reads_pm, (uint64_t)(lines / 2 * pm));
    window_set(&w, WINDOW_writes, (uint64_t)(lines / 2));
    window_set(&w, WINDOW_writes_pm, (uint64_t)(lines / 2 * pm));
    return w;
}

static struct window window_of(double pm)
{
    return window_with(LINES, pm);
}

/* Windows until the plan is given up, at most `most`; all found `pm`, promised 0.3. */
static int lasts(struct plan_trial *t, struct regret *purse, double pm, int from, int most)
{
    const struct work recorded = {.reads = WINDOWS * LINES / 2,
                                  .writes = WINDOWS * LINES / 2,
                                  .pm_reads = 0.3,
                                  .pm_writes = 0.3};
    for (int i = 0; i < most; i++) {
        struct window w = window_of(pm);
        if (!plan_trial_window(t, purse, (from + i + 1) * WINDOW_NS, &figures, &w, &recorded))
            return i + 1;
    }
    return most;
}

static void a_plan_that_holds_stays(void **state)
{
    struct plan_trial t = {0};
    struct regret purse = {0};
    (void)state;
    assert_int_equal(lasts(&t, &purse, 0.3, 0, 1000), 1000);
    assert_int_equal(lasts(&t, &purse, 0.1, 1000, 1000), 1000);
    assert_true(t.placed_ns < t.promised_ns);
    assert_true(regret_left(&purse, 1e9) == REGRET_SHARE * 1e9);
}

static void a_plan_that_does_not_is_given_up(void **state)
{
    struct plan_trial t = {0};
    struct regret purse = {0};
    (void)state;
    /* As soon as enough of the run has been seen, as the purse covers none of that. */
    assert_int_equal(lasts(&t, &purse, 0.8, 0, 1000), WINDOWS * PLAN_SEEN);
    assert_true(t.placed_ns > t.promised_ns * (1 + PLAN_WORSE));
    /* What was lost is paid, and nothing is put aside any more. */
    assert_false(t.trial.running);
    assert_true(purse.spent_ns > 0 && purse.aside_ns == 0);
}

static void a_phase_is_no_broken_promise(void **state)
{
    struct plan_trial t = {0};
    struct regret purse = {0};
    (void)state;
    assert_int_equal(lasts(&t, &purse, 1, 0, 5), 5);
    assert_int_equal(lasts(&t, &purse, 0.25, 5, 1000), 1000);
}

/* What comes in bursts and fills PM while they last is on the whole where it was promised. */
static void a_burst_is_no_broken_promise(void **state)
{
    const double lines = 4 * LINES;
    const struct work recorded = {.reads = WINDOWS * lines / 2,
                                  .writes = WINDOWS * lines / 2,
                                  .pm_reads = 0.45,
                                  .pm_writes = 0.45};
    struct plan_trial t = {0};
    struct regret purse = {0};
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct window w = window_with(lines, i % 2 ? 0.9 : 0);
        window_set(&w, WINDOW_stall_ns, (uint64_t)(i % 2 ? 6 * WINDOW_NS : WINDOW_NS));
        assert_true(plan_trial_window(&t, &purse, (i + 1) * WINDOW_NS, &figures, &w, &recorded));
    }
    assert_true(plan_trial_ratio(&t) > 0.9 && plan_trial_ratio(&t) < 1.1);
}

static void the_purse_pays_for_a_while(void **state)
{
    struct plan_trial t = {0};
    struct regret purse = {0};
    (void)state;
    assert_int_equal(lasts(&t, &purse, 0.3, 0, 2000), 2000);
    int more = lasts(&t, &purse, 0.8, 2000, 10000);
    assert_true(more > 1 && more < 10000);
    /* No more is lost than the purse had, but for the last window. */
    assert_true(purse.spent_ns <= REGRET_SHARE * (2000 + more) * WINDOW_NS + WINDOW_NS);
}

static void a_window_that_tells_nothing_changes_nothing(void **state)
{
    struct plan_trial t = {0};
    struct regret purse = {0};
    struct window none = {0}, untold = window_of(0.9);
    const struct work recorded = {.reads = 1, .writes = 1};
    (void)state;
    untold.have &= ~(1u << WINDOW_reads_pm);
    assert_true(plan_trial_window(&t, &purse, 1e9, &figures, &none, &recorded));
    assert_true(plan_trial_window(&t, &purse, 1e9, &figures, &untold, &recorded));
    assert_true(t.placed_ns == 0 && t.sum.reads == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_holds_stays),
        cmocka_unit_test(a_plan_that_does_not_is_given_up),
        cmocka_unit_test(a_phase_is_no_broken_promise),
        cmocka_unit_test(a_burst_is_no_broken_promise),
        cmocka_unit_test(the_purse_pays_for_a_while),
        cmocka_unit_test(a_window_that_tells_nothing_changes_nothing),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
