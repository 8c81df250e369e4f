/* SPDX-License-Identifier: BSD-2-Clause
 * Whether DRAM that a program frees and takes again is kept for it meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/idle.h"

#define WINDOW_NS 1e6

/* Streams of eight threads, most of them from PM; a page of 2000 is idle for each `retaken`. */
static bool is_cheap(struct idle_prices *p, const char *machine, double idle, double retaken)
{
    static struct machine_figures f;
    const struct work k = {.compute_ns = 2e6,
                           .reads = 100000,
                           .writes = 50000,
                           .exposure = 0.1,
                           .foreseen = 0.9,
                           .threads = 8,
                           .pm_reads = 0.7,
                           .pm_writes = 0.7};
    const struct idle_look look = {idle, retaken / WINDOW_NS, 2000};
    assert_int_equal(figures_default(machine, &f), 0);
    return idle_is_cheap(p, &f, &k, WINDOW_NS, &look);
}

static bool is_cheap_at_once(const char *machine, double idle, double retaken)
{
    struct idle_prices p = {0};
    return is_cheap(&p, machine, idle, retaken);
}

static void it_is_kept_where_pm_is_hardly_slower(void **state)
{
    (void)state;
    assert_true(is_cheap_at_once("cxl", 60, 400));
    assert_false(is_cheap_at_once("optane", 60, 400));
}

static void what_is_not_taken_again_is_given_back(void **state)
{
    (void)state;
    assert_false(is_cheap_at_once("cxl", 60, 0));
    assert_false(is_cheap_at_once("cxl", 1500, 100));
    assert_false(is_cheap_at_once("cxl", 3000, 100)); /* more than is in use */
    assert_false(is_cheap_at_once("cxl", 0, 0));
    assert_true(is_cheap_at_once("optane", 0, 100)); /* nothing lies idle */
}

/* A look that sees a part of a step with nothing to take again turns nothing. */
static void one_look_is_no_proof(void **state)
{
    struct idle_prices p = {0};
    (void)state;
    for (int i = 0; i < 16; i++)
        assert_true(is_cheap(&p, "cxl", 60, 400));
    assert_true(is_cheap(&p, "cxl", 100, 0));
    bool cheap = true;
    for (int i = 0; i < 64; i++)
        cheap = is_cheap(&p, "cxl", 100, 0);
    assert_false(cheap);
}

static void no_traffic_is_no_reason(void **state)
{
    struct idle_prices p = {0};
    static struct machine_figures f;
    const struct work idle = {.compute_ns = 8e6, .threads = 8};
    const struct idle_look look = {100, 100 / WINDOW_NS, 2000};
    (void)state;
    assert_int_equal(figures_default("cxl", &f), 0);
    assert_false(idle_is_cheap(&p, &f, &idle, WINDOW_NS, &look));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_kept_where_pm_is_hardly_slower),
        cmocka_unit_test(what_is_not_taken_again_is_given_back),
        cmocka_unit_test(one_look_is_no_proof),
        cmocka_unit_test(no_traffic_is_no_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
