/* SPDX-License-Identifier: BSD-2-Clause
 * Whether staging goes on, by what it has brought all tasks: programs of random tasks, of which the
 * test knows what they would have taken without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tasks/rules/task_account.h"

#define AHEAD 8u /* tasks later it shows that staging has ended */
#define TYPES 4u

static uint64_t seed;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / (double)(1ull << 53);
}

/* About normal, mean 1. */
static double scattered(double spread)
{
    double sum = 0;
    for (unsigned i = 0; i < 12; i++)
        sum += uniform();
    double t = 1 + (sum - 6) * spread;
    return t > 0.1 ? t : 0.1;
}

struct outcome {
    double changed; /* of the time without stages */
    unsigned staged;
};

/* Of `n` tasks; those that are staged take `factor` of their time. */
static struct outcome program(unsigned n, double spread, double factor)
{
    struct task_account type[TYPES];
    bool now = false, was[AHEAD] = {false};
    double took = 0, plain = 0;
    struct outcome o = {0};
    memset(type, 0, sizeof(type));
    for (unsigned i = 0; i < n; i++) {
        struct account_sum s = {0};
        struct task_account *a = &type[(unsigned)(uniform() * TYPES)];
        for (unsigned k = 0; k < TYPES; k++)
            account_add(&s, &type[k]);
        now = account_allows(&s, now) && account_knows(a, 0);
        bool staged = was[i % AHEAD];
        was[i % AHEAD] = now;
        double ns = 1e6 * (double)(1 + (a - type)) * scattered(spread);
        plain += ns;
        ns *= staged ? factor : 1;
        took += ns;
        o.staged += staged;
        (staged ? account_staged : account_quiet)(a, 0, ns);
    }
    o.changed = took / plain - 1;
    return o;
}

static double mean_of(unsigned n, double spread, double factor)
{
    double sum = 0;
    for (unsigned i = 0; i < 20; i++)
        sum += program(n, spread, factor).changed;
    return sum / 20;
}

/* Of the time without stages, what the tasks lose that had begun included. */
static void what_it_loses_is_below_a_hundredth(void **state)
{
    static const double spreads[] = {0, 0.02, 0.1, 0.3}, factors[] = {1.02, 1.05, 1.2, 1.5, 2, 4};
    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(spreads); i++)
        for (unsigned k = 0; k < HY_ARRAY_SIZE(factors); k++) {
            assert_true(mean_of(4000, spreads[i], factors[k]) < 0.01);
            assert_true(program(20000, spreads[i], factors[k]).changed < 0.01);
        }
}

static void what_it_wins_is_kept(void **state)
{
    static const double spreads[] = {0, 0.02, 0.1, 0.3}, factors[] = {0.9, 0.8, 0.5, 0.3};
    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(spreads); i++)
        for (unsigned k = 0; k < HY_ARRAY_SIZE(factors); k++)
            assert_true(mean_of(4000, spreads[i], factors[k]) < 0.95 * (factors[k] - 1));
}

/* Neither is known: they take turns. */
static void what_is_not_known_is_measured(void **state)
{
    (void)state;
    struct outcome o = program(2000, 0.5, 1);
    assert_true(o.staged >= 2000 / 10 && o.staged <= 2000 * 3 / 4);
}

static void nothing_begins_before_quiet_is_known(void **state)
{
    struct task_account a = {0};
    (void)state;
    assert_false(account_knows(&a, 0));
    for (unsigned i = 0; i < ACCOUNT_LEAST; i++)
        account_quiet(&a, 0, 1000);
    assert_true(account_knows(&a, 0));
    assert_false(account_knows(&a, 1)); /* those with their data on DRAM tell nothing of others */
    struct account_sum s = {0};
    account_add(&s, &a);
    assert_true(account_allows(&s, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_loses_is_below_a_hundredth),
        cmocka_unit_test(what_it_wins_is_kept),
        cmocka_unit_test(what_is_not_known_is_measured),
        cmocka_unit_test(nothing_begins_before_quiet_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
