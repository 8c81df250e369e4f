/* SPDX-License-Identifier: BSD-2-Clause
 * What of the registry's view is put to Algorithm 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "classify/figures.h"
#include "place/shares.h"
#include "settings/settings.h"
#include "sys/os.h"

#define MB       (1ull << 20)
#define SECOND   1000000000ull
#define LONG_AGO (11 * SECOND)

struct runtime_config hy_config;

static uint64_t now_ns = 100 * SECOND;
uint64_t __wrap_os_now_ns(void);

uint64_t __wrap_os_now_ns(void)
{
    return now_ns;
}

/* PM three times as slow as DRAM in every respect. */
const struct machine_figures *figures_here(void)
{
    static struct machine_figures f = {.medium = {{90, 90, 30000, 20000, 30000, 20000, 0, 0, 9},
                                                  {270, 270, 10000, 6667, 10000, 6667, 0, 0, 27}}};
    return &f;
}

enum { SELF, HOLDER, WISHER, PARTIES };

static struct registry_view view;
static uint64_t wisher_holds;

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
    view.entry[WISHER].dram_bytes = wisher_holds;
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

/* PM is three times as slow: nobody gains more than this machine can give. */
static void no_slowdown_is_believed_that_cannot_be(void **state)
{
    struct place_machine m = machine(40 * MB, 0, 0);

    (void)state;
    view.entry[WISHER].published.slowdown = 1000000;
    view.entry[HOLDER].published.slowdown = 1400;
    (void)shares_machine(&view, &m);
    assert_in_range(m.app[WISHER].slowdown, 2000, 9000);
    assert_int_equal(m.app[HOLDER].slowdown, 1400);
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
    uint64_t before = shares_given();

    (void)state;
    view.entry[WISHER].pid = 7;
    view.entry[WISHER].dram_bytes = 30 * MB;
    view.entry[HOLDER].pid = 8;
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_given() - before, 0);
    view.entry[WISHER].dram_bytes = 20 * MB; /* freed for a moment */
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_given() - before, 0);
    view.entry[WISHER].pid = 9;
    view.entry[WISHER].dram_bytes = 5 * MB;
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_given() - before, 20 * MB);
    view.n = 1;
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_given() - before, 65 * MB);
    (void)shares_machine(&view, &m);
    assert_int_equal(shares_given() - before, 65 * MB);
}

/* What the CPU-bound move to PM is anybody's, less what they take back; but one that turns out to
 * be bound by memory, or to be CPU-bound, has given up nothing by that. */
static void who_changes_its_class_gives_nothing(void **state)
{
    struct place_machine m = machine(40 * MB, 0, 0);
    uint64_t before;
    static const struct {
        enum hy_class cls;
        uint64_t holds, given;
    } look[] = {{HY_CLASS_CPU, 40, 0},       {HY_CLASS_CPU, 30, 10},   {HY_CLASS_CPU, 35, 5},
                {HY_CLASS_BANDWIDTH, 35, 5}, {HY_CLASS_UNKNOWN, 0, 5}, {HY_CLASS_CPU, 20, 5},
                {HY_CLASS_CPU, 0, 25}};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(look); i++) {
        view.entry[HOLDER].pid = 9;
        view.entry[HOLDER].published.cls = look[i].cls;
        view.entry[HOLDER].dram_bytes = look[i].holds * MB;
        (void)shares_machine(&view, &m);
        if (i == 0)
            before = shares_given();
        assert_int_equal(shares_given() - before, look[i].given * MB);
    }
}

/* It says that it wants all and takes nothing: for a while it has what is free, and what the
 * CPU-bound hold. */
static void who_takes_nothing_is_not_waited_for(void **state)
{
    struct place_machine m = machine(40 * MB, 0, 0);

    (void)state;
    assert_int_equal(placement_free(&m, SELF), 0);
    for (int i = 0; i < 11; i++) {
        now_ns += SECOND;
        m = machine(40 * MB, 0, 0);
    }
    assert_int_equal(placement_free(&m, SELF), 60 * MB);
    assert_int_equal(placement_asked_of(&m, HOLDER, UINT64_MAX), 0);
    /* It is heard again by what it takes. */
    for (int i = 0; i < 10; i++) {
        now_ns += SECOND;
        wisher_holds = 1 * MB;
        m = machine(40 * MB, 0, 0);
    }
    assert_int_equal(placement_free(&m, SELF), 0);
    wisher_holds = 0;
}

/* Its curve says that it would be a million times slower, and that all of it is hot. */
static void who_lies_in_its_curve(void **state)
{
    struct place_machine m = machine(0, 0, 0);
    const uint32_t honest[REGISTRY_CURVE] = {3000, 2750, 2500, 2250, 2000, 1750, 1500, 1250};

    (void)state;
    hy_config.set.policy = HY_POLICY_AUTO;
    hy_config.set.weight = 1;
    for (unsigned i = 0; i < PARTIES; i++) {
        struct registry_published *t = &view.entry[i].published;
        memcpy(t->time_at, honest, sizeof(honest));
        t->cls = HY_CLASS_BANDWIDTH;
        t->curve_now = 3000;
        t->run_ns = 1000 * SECOND;
        t->curve_bytes = t->curve_takes = i == HOLDER ? 0 : 90 * MB;
    }
    view.entry[SELF].dram_bytes = view.entry[SELF].published.curve_dram = 60 * MB;
    view.entry[SELF].published.curve_bytes = 60 * MB;
    for (unsigned k = 0; k < REGISTRY_CURVE; k++)
        view.entry[WISHER].published.time_at[k] = 1000000 - k;
    for (int i = 0; i < 3; i++) {
        (void)shares_machine(&view, &m);
        shares_divide(&view, SELF);
    }
    /* By what the machine can do, a byte of so many gains it less. */
    assert_int_equal(shares_asked(), 0);
    hy_config.set.weight = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_ends_leaves_what_it_held),
        cmocka_unit_test(who_changes_its_class_gives_nothing),
        cmocka_unit_test(the_living_are_heard),
        cmocka_unit_test(no_slowdown_is_believed_that_cannot_be),
        cmocka_unit_test(who_is_stopped_wishes_for_nothing),
        cmocka_unit_test(who_is_stopped_gives_up_nothing),
        cmocka_unit_test(who_takes_nothing_is_not_waited_for),
        cmocka_unit_test(who_lies_in_its_curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
