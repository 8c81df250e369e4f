/* SPDX-License-Identifier: BSD-2-Clause
 * What of the registry's view is put to Algorithm 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place/shares.h"
#include "settings/settings.h"
#include "sys/os.h"

#define MB       (1ull << 20)
#define SECOND   1000000000ull
#define LONG_AGO (11 * SECOND)

struct runtime_config hy_config;

enum { SELF, HOLDER, WISHER, PARTIES };

static struct registry_view view;

/* One that wishes; one that holds `held` and is CPU-bound, one that wishes for all there is and
 * writes much to PM: last heard of so long ago. */
static struct place_machine machine(uint64_t held, uint64_t holder_ns, uint64_t wisher_ns)
{
    static struct place_machine m;
    uint64_t now = os_now_ns();

    view = (struct registry_view){.dram_budget = 100 * MB, .n = PARTIES};
    for (unsigned i = 0; i < PARTIES; i++) {
        view.entry[i].slot = i;
        view.entry[i].heartbeat_ns = now;
    }
    view.entry[SELF].is_self = true;
    view.entry[SELF].published.cls = HY_CLASS_BANDWIDTH;
    view.entry[SELF].published.wish_bytes = 10 * MB;
    view.entry[HOLDER].published.cls = HY_CLASS_CPU;
    view.entry[HOLDER].dram_bytes = held;
    view.entry[HOLDER].heartbeat_ns -= holder_ns;
    view.entry[WISHER].published.cls = HY_CLASS_BANDWIDTH;
    view.entry[WISHER].published.wish_bytes = 1000 * MB;
    view.entry[WISHER].published.writers = 8000;
    view.entry[WISHER].heartbeat_ns -= wisher_ns;
    assert_int_equal(shares_machine(&view, &m), SELF);
    return m;
}

static void the_living_are_heard(void **state)
{
    struct place_machine m = machine(40 * MB, SECOND, SECOND);

    (void)state;
    assert_int_equal(placement_asked_of(&m, HOLDER, UINT64_MAX), 40 * MB);
    assert_int_equal(placement_free(&m, SELF), 0); /* the writer goes before */
    assert_int_equal(placement_wish(&m, SELF, 10 * MB), 0);
}

/* Stopped (SIGSTOP) while it wishes: nobody gives up anything for it, nor leaves it what is free.
 */
static void who_is_stopped_wishes_for_nothing(void **state)
{
    struct place_machine m = machine(95 * MB, SECOND, LONG_AGO);

    (void)state;
    assert_int_equal(placement_asked_of(&m, HOLDER, UINT64_MAX), 5 * MB);
    assert_int_equal(placement_free(&m, SELF), 5 * MB);
    assert_int_equal(placement_wish(&m, SELF, 10 * MB), 10 * MB);
}

/* Nor is it waited for where it should give up something: those who live are asked for all. What it
 * holds is not free all the same. */
static void who_is_stopped_gives_up_nothing(void **state)
{
    struct place_machine m = machine(90 * MB, LONG_AGO, LONG_AGO);

    (void)state;
    assert_int_equal(placement_asked_of(&m, HOLDER, UINT64_MAX), 0);
    assert_int_equal(placement_wish(&m, SELF, 50 * MB), 0);
    assert_int_equal(placement_free(&m, SELF), 10 * MB);
}

/* Whoever ends leaves its DRAM for good, even if another one has its slot at once. */
static void who_ends_leaves_what_it_held(void **state)
{
    struct place_machine m = machine(40 * MB, SECOND, SECOND);
    uint64_t before = shares_left();

    (void)state;
    view.entry[WISHER].pid = 7;
    view.entry[WISHER].dram_bytes = 30 * MB;
    view.entry[HOLDER].pid = 8;
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_left() - before, 0);
    view.entry[WISHER].dram_bytes = 20 * MB; /* freed for a moment */
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_left() - before, 0);
    view.entry[WISHER].pid = 9;
    view.entry[WISHER].dram_bytes = 5 * MB;
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_left() - before, 20 * MB);
    view.n = 1;
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_left() - before, 25 * MB); /* the CPU-bound one's is told elsewhere */
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_left() - before, 25 * MB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_ends_leaves_what_it_held),
        cmocka_unit_test(the_living_are_heard),
        cmocka_unit_test(who_is_stopped_wishes_for_nothing),
        cmocka_unit_test(who_is_stopped_gives_up_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
