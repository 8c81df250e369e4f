/* SPDX-License-Identifier: BSD-2-Clause
 * What sampled lines stand for: sums are the counters' where there are any, shares the samples'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/rules/access_scale.h"

static bool near(double a, double b)
{
    double d = a - b;
    return (d < 0 ? -d : d) <= 1e-9 * (a + b);
}

struct lines {
    double read, written;
};

/* Of all, or of a site with a share of the samples. */
static struct lines lines_of(const struct access_sums *s, double loads, double stores)
{
    struct access_scale c;
    access_scale_make(s, &c);
    return (struct lines){loads * c.read + stores * c.fetched, stores * c.written};
}

static struct lines all_of(const struct access_sums *s)
{
    return lines_of(s, s->lines[ACCESS_READ], s->lines[ACCESS_WRITTEN]);
}

static void what_was_not_seen_counts(void **state)
{
    struct access_sums s = {.lines = {1000, 50}};
    struct lines l = all_of(&s);
    (void)state;
    assert_true(near(l.read, 1000) && near(l.written, 50)); /* the emulated machine: as they are */
    s.lost = 0.5;
    l = all_of(&s);
    assert_true(near(l.read, 1500) && near(l.written, 75));
    /* Loads for three quarters of the time, stores for the rest. */
    s = (struct access_sums){.lines = {750, 25}, .seen = {0.75, 0.25}, .instructions = true};
    l = all_of(&s);
    assert_true(near(l.written, 100));
    assert_true(near(l.read, 1000 + 100)); /* a line that is stored to was read */
}

static void sums_are_the_counters(void **state)
{
    struct access_sums s = {.lines = {1000, 400},
                            .seen = {0.5, 0.5},
                            .lost = 0.1,
                            .instructions = true,
                            .counted = {10000, 100}};
    struct access_scale c;
    struct lines l = all_of(&s), a, b;
    (void)state;
    access_scale_make(&s, &c);
    assert_true(c.counted);
    assert_true(near(l.written, 100)); /* most stores found their lines in L3 */
    assert_true(near(l.read, 10000));  /* and prefetchers fetched what no load missed */
    /* Shares are those of the samples. */
    a = lines_of(&s, 750, 100);
    b = lines_of(&s, 250, 300);
    assert_true(near(3 * a.written, b.written));
    assert_true(near((a.read - a.written) / (b.read - b.written), 3));
    assert_true(near(a.read + b.read, l.read));
    /* Without samples of stores what was read for them is nobody's. */
    s.lines[ACCESS_WRITTEN] = s.seen[ACCESS_WRITTEN] = 0;
    l = all_of(&s);
    assert_true(near(l.read, 9900) && l.written == 0);
}

static void counters_that_do_not_fit(void **state)
{
    struct access_sums s = {.lines = {1000, 1000}, .seen = {1, 1}, .instructions = true};
    struct lines l;
    struct access_scale c;
    (void)state;
    /* No count of writes: stores as sampled, as far as there is room for them. */
    s.counted[ACCESS_READ] = 1500;
    l = all_of(&s);
    assert_true(near(l.written, 1000) && near(l.read, 750 + 1000));
    /* More writes than reads, as an upper bound may be: loads keep a share. */
    s.counted[ACCESS_WRITTEN] = 3000;
    l = all_of(&s);
    assert_true(near(l.written, 3000) && near(l.read, 1500.0 / 4 + 3000));
    /* Only of writes. */
    s.counted[ACCESS_READ] = 0;
    l = all_of(&s);
    access_scale_make(&s, &c);
    assert_true(!c.counted && near(l.read, 1000 + 3000));
}

static void anything_at_all(void **state)
{
    const double some[] = {0, 1, 1e18};
    (void)state;
    for (unsigned i = 0; i < 972; i++) {
        struct access_sums s = {.lines = {some[i % 3], some[i / 3 % 3]},
                                .seen = {some[i / 9 % 2], some[i / 18 % 2]},
                                .lost = some[i / 36 % 3],
                                .instructions = true,
                                .counted = {some[i / 108 % 3], some[i / 324 % 3]}};
        struct access_scale c;
        access_scale_make(&s, &c);
        assert_true(c.read >= 0 && c.fetched >= 0 && c.written >= 0);
        assert_true(c.read < 1e40 && c.fetched < 1e40 && c.written < 1e40); /* no NaN either */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_seen_counts),
        cmocka_unit_test(sums_are_the_counters),
        cmocka_unit_test(counters_that_do_not_fit),
        cmocka_unit_test(anything_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
