/* SPDX-License-Identifier: BSD-2-Clause
 * Which share of the last-level cache a program fills: who streams, what a trial finds and costs,
 * and when all of it is given back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stddef.h>

#include <cmocka.h>

#include "llc/rules/share.h"

#define WINDOW 1e8
#define IPS    3.0 /* instructions a ns with all ways */

/* A program: its windows so far, and what it would have done with all ways. */
struct run {
    struct llc_share share;
    struct regret purse;
    double ns, done, could;
    unsigned few; /* windows */
};

/* `n` windows in which it has `slow` of its speed with few ways. */
static void go(struct run *r, unsigned n, bool wanted, double speed)
{
    for (unsigned i = 0; i < n; i++) {
        bool few = llc_share_few(&r->share);
        double done = WINDOW * IPS * (few ? speed : 1);

        r->ns += WINDOW;
        r->done += done;
        r->could += WINDOW * IPS;
        r->few += few;
        llc_share_window(&r->share, wanted, &r->purse, r->ns, done, WINDOW);
    }
}

static void streams_are_known_by_their_misses_or_pages(void **state)
{
    struct classification c = {.cls = HY_CLASS_BANDWIDTH};
    struct window w = {0}, unknown = {0};

    (void)state;
    window_set(&w, WINDOW_reads, 1000);
    window_set(&w, WINDOW_foreseen, 500);
    assert_true(llc_streams(&c, &w, 0, 0));
    window_set(&w, WINDOW_foreseen, 499);
    assert_false(llc_streams(&c, &w, 10, 10)); /* counts are better than pages */
    assert_true(llc_streams(&c, &unknown, 5, 10));
    assert_false(llc_streams(&c, &unknown, 4, 10));
    assert_false(llc_streams(&c, &unknown, 0, 0));
    window_set(&w, WINDOW_foreseen, 1000);
    c.cls = HY_CLASS_LATENCY;
    assert_true(llc_streams(&c, &w, 0, 0));
    c.weak = true;
    assert_false(llc_streams(&c, &w, 0, 0));
    c = (struct classification){.cls = HY_CLASS_CPU};
    assert_false(llc_streams(&c, &w, 10, 10));
}

static void one_that_does_without_is_kept_to_few(void **state)
{
    struct run r = {0};

    (void)state;
    go(&r, 120, true, 1); /* the purse covers no trial yet: one window and a quarter is put aside */
    assert_int_equal(r.few, 0);
    go(&r, 40, true, 1);
    assert_true(llc_share_kept(&r.share));
    go(&r, 1000, true, 1);
    assert_true(llc_share_kept(&r.share));
    assert_true(r.few > 950); /* all ways are looked at now and then */
    assert_int_equal(r.share.given_back, 0);
}

static void alone_nothing_is_tried(void **state)
{
    struct run r = {0};

    (void)state;
    go(&r, 2000, false, 1);
    assert_int_equal(r.few, 0);
    assert_true(r.purse.spent_ns == 0 && r.purse.aside_ns == 0);
}

static void without_neighbours_it_ends(void **state)
{
    struct run r = {0};

    (void)state;
    go(&r, 400, true, 1);
    assert_true(llc_share_few(&r.share));
    go(&r, 3, false, 1);
    assert_false(llc_share_few(&r.share));
    go(&r, 10, true, 1); /* and begins anew */
    assert_false(llc_share_kept(&r.share));
    go(&r, 100, true, 1);
    assert_true(llc_share_kept(&r.share));
}

/* Whatever it loses by few ways, by 1 to 90 %, all trials cost it 1 % at most. */
static void one_that_loses_keeps_all(void **state)
{
    (void)state;
    for (unsigned percent = 10; percent <= 98; percent += 2) {
        struct run r = {0};
        for (unsigned i = 0; i < 40; i++) {
            go(&r, 100, true, percent / 100.0);
            assert_false(llc_share_kept(&r.share));
            assert_true(r.done >= (1 - REGRET_SHARE) * r.could - WINDOW * IPS);
        }
        assert_true(r.few > 0);
    }
}

static void what_it_loses_later_is_given_back_in_a_window(void **state)
{
    struct run r = {0};

    (void)state;
    go(&r, 500, true, 1);
    assert_true(llc_share_kept(&r.share));
    go(&r, 1, true, 0.7);
    assert_false(llc_share_few(&r.share));
    assert_int_equal(r.share.given_back, 1);
    go(&r, 500, true, 0.7);
    assert_false(llc_share_kept(&r.share));
    assert_true(r.done >= (1 - REGRET_SHARE) * r.could - WINDOW * IPS);
    go(&r, 2000, true, 1); /* it is tried again after a rest */
    assert_true(llc_share_kept(&r.share));
}

/* What it had in the cache serves it for `longer` windows: it seems to do without in every trial.
 */
static void one_that_loses_later_than_a_trial_lasts(unsigned longer, double speed)
{
    struct run r = {0};
    unsigned few = 0;

    for (unsigned i = 0; i < 4000; i++) {
        few = llc_share_few(&r.share) ? few + 1 : 0;
        go(&r, 1, true, few > longer ? speed : 1);
        assert_true(r.done >= (1 - REGRET_SHARE) * r.could - 2 * WINDOW * IPS);
    }
    assert_true(r.share.given_back > 0);
}

static void it_is_given_back_to_those(void **state)
{
    (void)state;
    for (unsigned longer = 1; longer <= 3; longer++)
        for (unsigned percent = 30; percent <= 80; percent += 10)
            one_that_loses_later_than_a_trial_lasts(longer, percent / 100.0);
}

static void without_instructions_nothing_is_known(void **state)
{
    struct llc_share s = {0};
    struct regret purse = {0};

    (void)state;
    for (unsigned i = 1; i < 1000; i++)
        llc_share_window(&s, true, &purse, i * WINDOW, 0, WINDOW);
    assert_false(llc_share_few(&s));
    assert_false(s.turn.paced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_known_by_their_misses_or_pages),
        cmocka_unit_test(one_that_does_without_is_kept_to_few),
        cmocka_unit_test(alone_nothing_is_tried),
        cmocka_unit_test(without_neighbours_it_ends),
        cmocka_unit_test(one_that_loses_keeps_all),
        cmocka_unit_test(what_it_loses_later_is_given_back_in_a_window),
        cmocka_unit_test(it_is_given_back_to_those),
        cmocka_unit_test(without_instructions_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
