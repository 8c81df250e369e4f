/* SPDX-License-Identifier: BSD-2-Clause
 * The choice of CPUs for a capped program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "threads/rules/cpus.h"

static struct hy_cpus range(unsigned from, unsigned to)
{
    struct hy_cpus s = {{0}};
    for (unsigned i = from; i < to; i++)
        cpus_add(&s, i);
    return s;
}

static void sets(void **state)
{
    struct hy_cpus a = range(0, HY_CPUS), b = range(3, 70);
    (void)state;
    assert_int_equal(cpus_count(&a), HY_CPUS);
    assert_int_equal(cpus_count(&b), 67);
    assert_true(cpus_has(&b, 3) && cpus_has(&b, 69) && !cpus_has(&b, 70) && !cpus_has(&b, 2));
    assert_false(cpus_has(&a, HY_CPUS));
    cpus_add(&b, HY_CPUS); /* beyond: nothing */
    assert_int_equal(cpus_count(&b), 67);
    assert_true(cpus_equal(&a, &a) && !cpus_equal(&a, &b));
}

static void takes_low_numbers_without_facts(void **state)
{
    struct hy_cpus allowed = range(4, 12), none = {{0}}, want = range(4, 7), got;
    (void)state;
    got = cpus_choose(&allowed, &none, NULL, 0, 0, 3);
    assert_true(cpus_equal(&got, &want));
    got = cpus_choose(&allowed, &none, NULL, 0, 0, 100);
    assert_true(cpus_equal(&got, &allowed));
    got = cpus_choose(&allowed, &none, NULL, 0, 0, 0); /* never none */
    assert_int_equal(cpus_count(&got), 1);
    got = cpus_choose(&none, &none, NULL, 0, 0, 3);
    assert_int_equal(cpus_count(&got), 0);
}

/* 2 sockets of 4 cores with 2 hyperthreads: 0-3, 4-7, siblings 8-11, 12-15; the PM is at
 * the second socket. */
static void prefers_cores_then_nearness(void **state)
{
    struct cpu_facts facts[16];
    struct hy_cpus all = range(0, 16), none = {{0}}, want, got;
    (void)state;
    for (unsigned i = 0; i < 16; i++)
        facts[i] = (struct cpu_facts){.distance = i / 4 % 2 ? 17 : 28, .sibling = i >= 8};
    got = cpus_choose(&all, &none, facts, 16, 0, 3);
    want = range(4, 7);
    assert_true(cpus_equal(&got, &want));
    got = cpus_choose(&all, &none, facts, 16, 0, 8);
    want = range(0, 8);
    assert_true(cpus_equal(&got, &want));
    got = cpus_choose(&all, &none, facts, 16, 0, 9);
    cpus_add(&want, 12);
    assert_true(cpus_equal(&got, &want));
}

static void avoids_what_others_took(void **state)
{
    struct hy_cpus all = range(0, 8), taken = range(0, 6), want, got;
    (void)state;
    got = cpus_choose(&all, &taken, NULL, 0, 0, 2);
    want = range(6, 8);
    assert_true(cpus_equal(&got, &want));
    got = cpus_choose(&all, &taken, NULL, 0, 0, 3); /* more than there are: share */
    cpus_add(&want, 0);
    assert_true(cpus_equal(&got, &want));
}

static void fewer_are_a_part_of_more(void **state)
{
    struct cpu_facts facts[64];
    struct hy_cpus all = range(0, 64), taken = range(10, 20), last = {{0}};
    (void)state;
    for (unsigned i = 0; i < 64; i++)
        facts[i] = (struct cpu_facts){.distance = (uint16_t)(10 + i * 7 % 3), .sibling = i % 2};
    for (unsigned n = 1; n <= 64; n++) {
        struct hy_cpus now = cpus_choose(&all, &taken, facts, 64, 0, n);
        assert_int_equal(cpus_count(&now), n);
        for (unsigned i = 0; i < 64; i++)
            assert_true(!cpus_has(&last, i) || cpus_has(&now, i));
        last = now;
    }
}

static void begins_where_it_is_told(void **state)
{
    struct hy_cpus allowed = range(2, 12), none = {{0}}, want = range(8, 12), got;
    (void)state;
    cpus_add(&want, 2);
    got = cpus_choose(&allowed, &none, NULL, 0, 8, 5);
    assert_true(cpus_equal(&got, &want));
    /* Processes with neighbouring numbers begin apart, always within what is allowed. */
    assert_int_equal(cpus_turn(&allowed, 100, 4), 2);
    assert_int_equal(cpus_turn(&allowed, 101, 4), 6);
    assert_int_equal(cpus_turn(&allowed, 102, 4), 10);
    for (uint32_t pid = 0; pid < 100; pid++)
        assert_true(cpus_has(&allowed, cpus_turn(&allowed, pid * 7919, 3)));
    assert_int_equal(cpus_turn(&none, 5, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets),
        cmocka_unit_test(takes_low_numbers_without_facts),
        cmocka_unit_test(prefers_cores_then_nearness),
        cmocka_unit_test(avoids_what_others_took),
        cmocka_unit_test(fewer_are_a_part_of_more),
        cmocka_unit_test(begins_where_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
