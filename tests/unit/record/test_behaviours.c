/* SPDX-License-Identifier: BSD-2-Clause
 * Windows that are alike become one behaviour, whatever their order, and nothing is lost by it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/rules/behaviours.h"

#define SOURCES 40
#define KINDS   3
#define MS      1000000u

static struct machine_figures f;
static access_lines room[BEHAVIOURS][SOURCES];
static struct behaviours b;
static uint64_t state_of_random;

static unsigned below(unsigned n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state_of_random >> 33) % n);
}

static int setup(void **state)
{
    (void)state;
    memset(room, 0, sizeof(room));
    memset(&b, 0, sizeof(b));
    for (unsigned i = 0; i < BEHAVIOURS; i++)
        b.lines[i] = room[i];
    state_of_random = 11;
    return figures_default("optane", &f);
}

/* `kind` reads one source and writes the next, 4 % more or less of it; source 0 is of all. */
static void add(unsigned kind, uint64_t ns)
{
    struct window w = {0};
    double lines = (double)ns / MS * (96 + below(9)) * 100;
    access_lines *to = b.lines[b.n];

    window_set(&w, WINDOW_elapsed_ns, ns);
    window_set(&w, WINDOW_busy_ns, 4 * ns);
    window_set(&w, WINDOW_threads, 4);
    window_set(&w, WINDOW_stall_ns, ns);
    window_set(&w, WINDOW_reads, (uint64_t)(2 * lines));
    window_set(&w, WINDOW_writes, (uint64_t)lines);
    to[0][ACCESS_READ] += lines;
    to[1 + kind][ACCESS_READ] += lines;
    to[2 + kind][ACCESS_WRITTEN] += lines;
    run_sum_add(&b.sum[b.n], &f, &w);
    behaviours_end(&b, &f, SOURCES);
}

static void few_windows_are_behaviours_of_their_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PROFILE_BEHAVIOURS; i++)
        add(i % KINDS, MS);
    assert_int_equal(b.n, PROFILE_BEHAVIOURS);
    for (unsigned i = 0; i < PROFILE_BEHAVIOURS; i++) {
        assert_true(b.lines[i][1 + i % KINDS][ACCESS_READ] > 0);
        assert_int_equal(b.sum[i].all.windows, 1);
    }
}

/* Of each behaviour the lines are those of one kind of windows; all of them are in one. */
static void what_is_alike_is_found(void **state)
{
    double reads = 0, ms = 0;
    unsigned seen = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        add(below(KINDS), MS / 2 + below(MS));
    assert_int_equal(b.n, PROFILE_BEHAVIOURS);
    for (unsigned i = 0; i < b.n; i++) {
        struct profile_behaviour is;
        unsigned kinds = 0;

        assert_int_equal(run_sum_get(&b.sum[i], &f, &is), 0);
        assert_true(is.busy_threads > 3.9 && is.busy_threads < 4.1 && is.slowdown > 1);
        for (unsigned k = 0; k < KINDS; k++)
            if (b.lines[i][1 + k][ACCESS_READ] > 0) {
                kinds++;
                seen |= 1u << k;
            }
        assert_int_equal(kinds, 1);
        assert_true(b.lines[i][0][ACCESS_READ] * 2 - (double)is.reads < (double)is.reads * 1e-3);
        reads += (double)is.reads;
        ms += is.ms;
    }
    assert_int_equal(seen, (1u << KINDS) - 1);
    assert_true(ms > 950 && ms < 1050);
    assert_true(reads > ms * 19000 && reads < ms * 21000);
    /* What goes on is under way: it begins at nothing. */
    assert_int_equal(b.sum[b.n].all.windows, 0);
    for (unsigned s = 0; s < SOURCES; s++)
        assert_true(b.lines[b.n][s][ACCESS_READ] == 0 && b.lines[b.n][s][ACCESS_WRITTEN] == 0);
}

static void no_time_is_no_behaviour(void **state)
{
    (void)state;
    add(0, 0);
    assert_int_equal(b.n, 0);
    add(1, MS);
    assert_int_equal(b.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(few_windows_are_behaviours_of_their_own, setup),
        cmocka_unit_test_setup(what_is_alike_is_found, setup),
        cmocka_unit_test_setup(no_time_is_no_behaviour, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
