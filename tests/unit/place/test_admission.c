/* SPDX-License-Identifier: BSD-2-Clause
 * Who begins beside whom (papers/004, section V.B): methods 1 and 2, and the order of those who
 * wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/admission.h"

#define N HY_ARRAY_SIZE

/* The programs of the paper's Fig. 8, as they lie there. */
static const struct admission_party lu = {
    .pid = 1, .cls = HY_CLASS_LATENCY, .writes = true, .on_pm = true};
static const struct admission_party ocean = {.pid = 2, .cls = HY_CLASS_BANDWIDTH};
static const struct admission_party mining = {.pid = 3, .cls = HY_CLASS_CPU};

static struct admission_party waiting(struct admission_party p, int pid, uint64_t since)
{
    p.pid = pid;
    p.arrived_ns = since;
    return p;
}

static void test_a_writer_on_pm_and_a_reader_of_dram_are_in_conflict(void **state)
{
    struct admission_party p = lu, q = ocean;

    (void)state;
    assert_true(admission_conflict(&lu, &ocean));
    assert_true(admission_conflict(&ocean, &lu));
    assert_false(admission_conflict(&lu, &mining));
    assert_false(admission_conflict(&ocean, &mining));
    assert_false(admission_conflict(&ocean, &ocean));
    p.on_pm = false; /* its writes go to DRAM */
    assert_false(admission_conflict(&p, &ocean));
    p = lu;
    p.writes = false;
    assert_false(admission_conflict(&p, &ocean));
    q.on_pm = true; /* it suffers from PM anyway */
    assert_false(admission_conflict(&lu, &q));
}

static void test_method_1(void **state)
{
    struct admission_party p[] = {lu, waiting(ocean, 8, 10), waiting(mining, 9, 20)};

    (void)state;
    assert_int_equal(admission_waits_for(p, N(p), 1), 0);
    assert_int_equal(admission_waits_for(p, N(p), 2), N(p)); /* overtakes */
}

static void test_method_2(void **state)
{
    struct admission_party p[] = {ocean, waiting(lu, 8, 10), waiting(mining, 9, 20)};

    (void)state;
    assert_int_equal(admission_waits_for(p, N(p), 1), 0);
    assert_int_equal(admission_waits_for(p, N(p), 2), N(p));
}

static void test_in_order_of_arrival(void **state)
{
    /* ocean waits for lu; a second lu could run beside the first, but would keep ocean waiting. */
    struct admission_party p[] = {lu, waiting(lu, 7, 20), waiting(ocean, 8, 10)};

    (void)state;
    assert_int_equal(admission_waits_for(p, N(p), 1), 2);
    p[1].arrived_ns = 5;
    assert_int_equal(admission_waits_for(p, N(p), 1), N(p));
    p[1].arrived_ns = p[2].arrived_ns; /* never both, never none */
    assert_int_equal(admission_waits_for(p + 1, 2, 0), 2);
    assert_int_equal(admission_waits_for(p + 1, 2, 1), 0);
}

static void test_nobody_stands_behind_one_who_is_stopped(void **state)
{
    struct admission_party p[] = {waiting(ocean, 8, 10), waiting(lu, 7, 20)};

    (void)state;
    p[0].age_ns = ADMISSION_SILENT_NS;
    assert_int_equal(admission_waits_for(p, N(p), 1), 0);
    p[0].age_ns++;
    assert_int_equal(admission_waits_for(p, N(p), 1), N(p));
    p[0].arrived_ns = 0; /* one who runs may be silent for long */
    assert_int_equal(admission_waits_for(p, N(p), 1), 0);
}

/* Of any set of waiting ones somebody can begin, and no two that begin at a time are in conflict.
 */
static void test_somebody_always_begins(void **state)
{
    struct admission_party p[6];

    (void)state;
    srand(1);
    for (int round = 0; round < 20000; round++) {
        bool begins[N(p)], any = false;
        for (unsigned i = 0; i < N(p); i++) {
            p[i] = (struct admission_party){.pid = (int)i + 1,
                                            .cls = (enum hy_class)(rand() % HY_CLASS_MAX),
                                            .writes = rand() % 2,
                                            .on_pm = rand() % 2,
                                            .arrived_ns = 1 + (uint64_t)(rand() % 3)};
        }
        for (unsigned i = 0; i < N(p); i++)
            any |= begins[i] = admission_waits_for(p, N(p), i) == N(p);
        assert_true(any);
        for (unsigned i = 0; i < N(p); i++)
            for (unsigned k = 0; k < i; k++)
                assert_false(begins[i] && begins[k] && admission_conflict(&p[i], &p[k]));
    }
}

static void test_where_the_data_will_be(void **state)
{
    (void)state;
    assert_false(admission_on_pm(100, 100));
    assert_false(admission_on_pm(100, 50));
    assert_true(admission_on_pm(100, 49));
    assert_true(admission_on_pm(0, 0));
    assert_false(admission_on_pm(0, 1));
    assert_true(admission_on_pm(UINT64_MAX, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_writer_on_pm_and_a_reader_of_dram_are_in_conflict),
        cmocka_unit_test(test_method_1),
        cmocka_unit_test(test_method_2),
        cmocka_unit_test(test_in_order_of_arrival),
        cmocka_unit_test(test_nobody_stands_behind_one_who_is_stopped),
        cmocka_unit_test(test_somebody_always_begins),
        cmocka_unit_test(test_where_the_data_will_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
