/* SPDX-License-Identifier: BSD-2-Clause
 * What moves have brought, by windows of counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pages/rules/payoff.h"

static struct machine_figures machine;

static struct window window(uint64_t reads, uint64_t reads_pm, uint64_t stall_ns)
{
    struct window w = {0};
    window_set(&w, WINDOW_elapsed_ns, 1000000);
    window_set(&w, WINDOW_reads, reads);
    window_set(&w, WINDOW_reads_pm, reads_pm);
    window_set(&w, WINDOW_writes, 0);
    window_set(&w, WINDOW_writes_pm, 0);
    if (stall_ns)
        window_set(&w, WINDOW_stall_ns, stall_ns);
    return w;
}

static struct payoff of(unsigned windows, uint64_t pm, uint64_t swing)
{
    struct payoff p = {0};
    for (unsigned i = 0; i < windows; i++) {
        struct window w = window(10000, i % 2 ? pm - swing : pm + swing, 0);
        assert_true(payoff_add(&p, &w));
    }
    return p;
}

static void fewer_lines_from_pm_are_a_gain(void **state)
{
    struct payoff before = of(8, 8000, 0), after = of(8, 1000, 0);
    (void)state;
    int64_t gain = payoff_gain(&before, &after, &machine, 1e7);
    /* 0.7 of 10 lines a us for 10 ms, a quarter of the difference in latency each */
    double extra = machine.medium[HY_PM].read_ns - machine.medium[HY_DRAM].read_ns;
    assert_true(gain > 0.99 * 70000 * extra / 4 && gain < 1.01 * 70000 * extra / 4);
    assert_true(payoff_gain(&after, &before, &machine, 1e7) < 0);
    assert_int_equal(payoff_gain(&before, &before, &machine, 1e7), 0);
}

static void swings_are_no_gain(void **state)
{
    struct payoff before = of(8, 5000, 2000), after = of(8, 4800, 2000);
    struct payoff calm = of(8, 5000, 10), better = of(8, 4800, 10);
    (void)state;
    assert_int_equal(payoff_gain(&before, &after, &machine, 1e7), 0);
    assert_true(payoff_gain(&calm, &better, &machine, 1e7) > 0);
}

static void nothing_known_is_no_gain(void **state)
{
    struct payoff none = {0}, some = of(4, 5000, 0);
    struct window w = {0};
    (void)state;
    assert_false(payoff_add(&none, &w));
    assert_true(payoff_pm_share(&none) < 0);
    assert_true(payoff_dram_use(&none, &machine) < 0);
    assert_int_equal(payoff_gain(&none, &some, &machine, 1e7), 0);
    assert_int_equal(payoff_gain(&some, &none, &machine, 1e7), 0);
}

/* 100 us, in which pages that came up were used so often, each time for 16 lines. */
static int64_t pages_gain(uint64_t up, uint64_t down, const struct payoff *now)
{
    return payoff_of_pages(up, down, 16, 1e5, now, &machine, 1e6);
}

static void pages_tell_what_they_bring(void **state)
{
    struct payoff now = of(4, 5000, 0), none = {0};
    double extra = machine.medium[HY_PM].read_ns - machine.medium[HY_DRAM].read_ns;
    double want = 900 * 16 * 10 * extra / 4;
    (void)state;
    assert_true(pages_gain(1000, 100, &now) > 0.99 * want);
    assert_true(pages_gain(1000, 100, &now) < 1.01 * want);
    assert_int_equal(pages_gain(1000, 100, &none), pages_gain(1000, 100, &now));
    assert_true(pages_gain(100, 1000, &now) < -0.99 * want);
    assert_int_equal(pages_gain(1000, 1000, &now), 0);
    assert_int_equal(pages_gain(1020, 1000, &now), 0); /* luck */
    assert_true(pages_gain(1200, 1000, &now) > 0);
    assert_int_equal(payoff_of_pages(10, 0, 16, 0, &now, &machine, 1e6), 0);
}

static void waits_for_a_line(void **state)
{
    struct payoff p = {0}, unknown = of(1, 5000, 0);
    struct window w = window(10000, 5000, 400000);
    (void)state;
    assert_true(payoff_line_ns(&p) < 0 && payoff_line_ns(&unknown) < 0);
    assert_true(payoff_add(&p, &w));
    assert_true(payoff_line_ns(&p) == 40);
}

static void dram_in_use(void **state)
{
    struct payoff p = {0};
    /* Half of what it can: lines a ms. */
    uint64_t lines = (uint64_t)(machine.medium[HY_DRAM].seq_read_mbs * 1e3 / 64 / 2);
    struct window w = window(lines + 500, 500, 0);
    (void)state;
    assert_true(payoff_add(&p, &w));
    double use = payoff_dram_use(&p, &machine);
    assert_true(use > 0.49 && use < 0.51);
}

static void moves_must_spare_more_of_pm_than_they_make(void **state)
{
    const double ms = 1e6;
    (void)state;
    /* 10 pages up, 10 down: 1280 lines. 100 samples more of 16 lines in 1 ms, for 1 ms: 1600. */
    assert_true(payoff_spares_pm(150, 50, 16, ms, ms, 10, 10));
    assert_false(payoff_spares_pm(120, 50, 16, ms, ms, 10, 10));
    assert_true(payoff_spares_pm(120, 50, 16, ms, 2 * ms, 10, 10));
    assert_false(payoff_spares_pm(50, 150, 16, ms, 100 * ms, 10, 10));
    assert_false(payoff_spares_pm(150, 50, 16, 0, ms, 10, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_lines_from_pm_are_a_gain),
        cmocka_unit_test(swings_are_no_gain),
        cmocka_unit_test(nothing_known_is_no_gain),
        cmocka_unit_test(pages_tell_what_they_bring),
        cmocka_unit_test(moves_must_spare_more_of_pm_than_they_make),
        cmocka_unit_test(waits_for_a_line),
        cmocka_unit_test(dram_in_use),
    };
    assert_int_equal(figures_default("pram", &machine), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
