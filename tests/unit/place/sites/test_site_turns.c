/* SPDX-License-Identifier: BSD-2-Clause
 * Sites that hold memory by turns: what is learned from their last turns, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place/rules/site_turns.h"

/* A step of a program: each site's turn, [from, to) of the step's volume. */
struct habit {
    uint64_t from, to;
};
#define STEP 100u

static struct site_turn after(const struct habit *h, unsigned steps)
{
    struct site_turn t = {0};
    for (unsigned s = 0; s < steps; s++) {
        site_turn_begin(&t, s * STEP + h->from);
        site_turn_end(&t, s * STEP + h->to);
    }
    return t;
}

static void what_has_not_come_twice_may_come_at_any_time(void **state)
{
    const struct habit early = {10, 20}, late = {60, 70};
    struct site_turn once = after(&late, 1), often = after(&early, 3), none = {0};
    (void)state;
    assert_true(site_turns_meet(&once, &often, 310));
    assert_true(site_turns_meet(&none, &often, 310));
}

static void what_has_not_ended_has_no_end(void **state)
{
    const struct habit late = {60, 70};
    struct site_turn often = after(&late, 3), open = {0};
    (void)state;
    site_turn_begin(&open, 310);
    assert_true(site_turns_meet(&often, &open, 310));
    site_turn_end(&open, 311);
    site_turn_begin(&open, 312);
    assert_false(site_turns_meet(&often, &open, 312));
    /* Nothing else was asked for while it was there: that is an end, too. */
    site_turn_begin(&open, 320);
    site_turn_end(&open, 320);
    assert_true(open.length == 1);
}

static void turns_that_overlap_in_each_step_meet(void **state)
{
    (void)state;
    for (uint64_t a = 1; a < STEP - 1; a += 7)
        for (uint64_t long_a = 1; a + long_a < STEP; long_a += 5)
            for (uint64_t b = a + 1; b < STEP; b += 3) {
                const struct habit x = {a, a + long_a}, y = {b, b + 1};
                struct site_turn tx = after(&x, 3), ty = after(&y, 3);
                /* x comes again in the fourth step; y comes after it in the same one. */
                uint64_t now = 3 * STEP + a;
                site_turn_begin(&tx, now);
                assert_true(site_turns_meet(&ty, &tx, now) == (b <= a + long_a));
            }
}

static void another_rhythm_is_learned_in_a_turn(void **state)
{
    const struct habit slow = {50, 60};
    struct site_turn t = after(&slow, 2), brief = {.since = 1, .period = 5, .length = 5};
    (void)state;
    assert_false(site_turns_meet(&t, &brief, 200));
    site_turn_begin(&t, 201);
    site_turn_end(&t, 202);
    site_turn_begin(&t, 204);
    site_turn_end(&t, 205);
    assert_true(site_turns_meet(&t, &brief, 205));
}

static void what_is_taken_from_better_ones_must_be_made_up_for(void **state)
{
    (void)state;
    assert_true(site_turn_pays(100, 150, 50, 1, 99));
    assert_false(site_turn_pays(100, 150, 51, 1, 101));
    assert_true(site_turn_pays(100, 150, 51, 1, 99));
    /* What does not find room costs nobody anything. */
    assert_true(site_turn_pays(1000, 100, 0, 1, 99));
    assert_false(site_turn_pays(1000, 100, 100, 1, 2));
    assert_false(site_turn_pays(1000, 0, 0, 1, 0));
    assert_false(site_turn_pays(1000, 100, 0, 0, 0));
    /* In part it takes what nobody else wants. */
    assert_int_equal(site_turn_part(100, 150, 50, 1, 99), 100);
    assert_int_equal(site_turn_part(100, 150, 51, 1, 101), 99);
    assert_int_equal(site_turn_part(100, 50, 60, 1, 101), 0);
    assert_int_equal(site_turn_part(100, 150, 0, 0, 0), 0);
    /* One that has a part by the plan takes nothing from better ones because its part saves so
     * much. */
    assert_int_equal(site_turn_part(1000, 900, 100, 1, 2), 1000);
    assert_int_equal(site_turn_split(1000, 900, 100, 1, 2), 800);
    assert_int_equal(site_turn_split(1000, 900, 100, 2, 1), 900);
    assert_int_equal(site_turn_split(100, 900, 100, 1, 2), 100);
    assert_int_equal(site_turn_split(100, 50, 60, 1, 2), 0);
    assert_int_equal(site_turn_split(100, 900, 0, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_not_come_twice_may_come_at_any_time),
        cmocka_unit_test(what_has_not_ended_has_no_end),
        cmocka_unit_test(turns_that_overlap_in_each_step_meet),
        cmocka_unit_test(another_rhythm_is_learned_in_a_turn),
        cmocka_unit_test(what_is_taken_from_better_ones_must_be_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
