/* SPDX-License-Identifier: BSD-2-Clause
 * What a trace keeps when it gets long, what a run's windows add up to, and text that does
 * not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "classify/rules/tally.h"
#include "report/rules/trace_text.h"

#define CAP 65536u

static char buf[CAP];

/* --- text ------------------------------------------------------------------------ */

static void what_does_not_fit_is_left_out_whole(void **state)
{
    char small[8];
    struct textbuf t = {.buf = small, .cap = sizeof(small)};

    (void)state;
    textbuf_add(&t, "%d", 123);
    assert_false(t.full);
    textbuf_add(&t, "%s", "56789"); /* one too many, with the NUL */
    assert_true(t.full);
    assert_string_equal(small, "123");
    textbuf_add(&t, "4");
    assert_string_equal(small, "123"); /* nothing follows a gap */
}

static void strings_are_json(void **state)
{
    struct textbuf t = {.buf = buf, .cap = CAP};

    (void)state;
    textbuf_json(&t, "a\"b\\c\n\x1b\xff</script>");
    assert_string_equal(buf, "\"a\\\"b\\\\c\\u000a\\u001b\\u00ff</script>\"");
}

/* --- thinning ---------------------------------------------------------------------- */

static void sample(struct trace_text *t, enum trace_kind kind, unsigned i)
{
    trace_open(t, kind, "x");
    textbuf_add(&t->text, ", \"i\": %u, \"pad\": \"%0200d\"", i, 0);
    trace_close(t);
}

struct content {
    unsigned ticks, passes, others, first_tick, last_tick, widest;
};

/* Every line whole, in order, and how far apart the samples are. */
static struct content read_back(const struct trace_text *t)
{
    struct content c = {.first_tick = UINT32_MAX};
    const char *at = t->text.buf, *end = at + t->text.len;

    assert_int_equal(strlen(t->text.buf), t->text.len);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        unsigned i;
        assert_non_null(stop);
        assert_true(at[0] == '{' && stop[-1] == '}');
        if (sscanf(at, "{\"tick\": \"x\", \"i\": %u,", &i) == 1) {
            if (c.ticks++ == 0)
                c.first_tick = i;
            else
                c.widest = i - c.last_tick > c.widest ? i - c.last_tick : c.widest;
            assert_true(c.ticks == 1 || i > c.last_tick);
            c.last_tick = i;
        } else if (strncmp(at, "{\"pass\": ", 9) == 0) {
            c.passes++;
        } else {
            assert_int_equal(strncmp(at, "{\"line\": ", 9), 0);
            c.others++;
        }
        at = stop + 1;
    }
    return c;
}

static void a_trace_covers_its_run_however_long(void **state)
{
    static const unsigned lengths[] = {1, 100, 1000, 100000};

    (void)state;
    for (size_t k = 0; k < HY_ARRAY_SIZE(lengths); k++) {
        struct trace_text t;
        trace_begin(&t, buf, CAP);
        sample(&t, TRACE_OTHER, 0);
        for (unsigned i = 0; i < lengths[k]; i++) {
            if (trace_due(&t, TRACE_TICK))
                sample(&t, TRACE_TICK, i);
            if (i % 2 == 0 && trace_due(&t, TRACE_PASS))
                sample(&t, TRACE_PASS, i);
            if (i == lengths[k] / 2)
                sample(&t, TRACE_OTHER, 1);
        }
        struct content c = read_back(&t);
        assert_int_equal(c.others, 2);
        assert_int_equal(c.first_tick, 0);
        assert_true(c.widest <= 2 * t.every);
        assert_true(c.last_tick + 2 * t.every >= lengths[k]);
        if (lengths[k] == 100) /* all of it fits */
            assert_int_equal(c.ticks, 100);
        if (lengths[k] > 1000) /* what is left is still fine enough to draw */
            assert_true(c.ticks >= 40 && c.passes >= 15);
    }
}

static void lines_that_must_stay_cannot_overflow(void **state)
{
    struct trace_text t;

    (void)state;
    trace_begin(&t, buf, CAP);
    for (unsigned i = 0; i < 2000; i++)
        sample(&t, TRACE_OTHER, i);
    sample(&t, TRACE_TICK, 0); /* no room is left: nothing is broken by it */
    struct content c = read_back(&t);
    assert_true(c.others > 200);
    assert_true(t.text.len < CAP);
}

static void a_line_that_is_too_long_is_taken_back(void **state)
{
    static char small[TRACE_LINE_CAP + 64];
    struct trace_text t;

    (void)state;
    trace_begin(&t, small, sizeof(small));
    trace_open(&t, TRACE_OTHER, "x");
    for (int i = 0; i < 1000; i++)
        textbuf_add(&t.text, ", \"n\": %d", i);
    trace_close(&t);
    assert_int_equal(t.text.len, 0);
    assert_string_equal(small, "");
    sample(&t, TRACE_OTHER, 0); /* the next one is as if nothing had been */
    assert_int_equal(read_back(&t).others, 1);
}

/* --- tally ----------------------------------------------------------------------------- */

static struct machine_figures figures(void)
{
    struct machine_figures f;
    assert_int_equal(figures_default("optane", &f), 0);
    return f;
}

/* A millisecond of 4 threads that wait for memory, `pm_pct` of it on PM. */
static struct window busy_window(unsigned pm_pct)
{
    struct window w = {0};
    window_set(&w, WINDOW_elapsed_ns, 1000000);
    window_set(&w, WINDOW_busy_ns, 4000000);
    window_set(&w, WINDOW_threads, 4);
    window_set(&w, WINDOW_instructions, 2000000);
    window_set(&w, WINDOW_reads, 10000);
    window_set(&w, WINDOW_reads_pm, 100 * pm_pct);
    window_set(&w, WINDOW_writes, 2000);
    window_set(&w, WINDOW_writes_pm, 20 * pm_pct);
    window_set(&w, WINDOW_stall_ns, 3000000);
    return w;
}

static void predictions_are_anchored_at_what_was_measured(void **state)
{
    struct machine_figures f = figures();

    (void)state;
    for (unsigned pm = 0; pm <= 100; pm += 50) {
        struct tally t = {0};
        struct window w = busy_window(pm);
        tally_add(&t, &f, &w);
        tally_add(&t, &f, &w);
        assert_int_equal(t.judged, 2);
        assert_true(t.placed_ns == 2000000);
        assert_true(t.dram_ns <= t.placed_ns * 1.0001 && t.placed_ns <= t.pm_ns * 1.0001);
        assert_true(t.pm_ns > 1.05 * t.dram_ns);
        assert_true(t.last_placed >= 0.999 && t.last_pm >= t.last_placed * 0.999);
        if (pm == 0)
            assert_true(t.dram_ns > 0.999 * t.placed_ns && t.last_placed < 1.001);
        if (pm == 100)
            assert_true(t.pm_ns < 1.001 * t.placed_ns);
    }
}

/* What waits for memory does not get faster by a higher clock: hybridctl batch --clock goes by
 * that. */
static void computing_is_told_apart_from_waiting(void **state)
{
    struct machine_figures f = figures();
    struct window w = busy_window(0);
    struct tally t = {0};

    (void)state;
    window_set(&w, WINDOW_stall_ns, 600000);
    window_set(&w, WINDOW_wait_ns, 400000);
    tally_add(&t, &f, &w);
    assert_true(t.busy_ns == 4000000);
    assert_true(t.compute_ns > 2900000 && t.compute_ns < 3100000);
    window_set(&w, WINDOW_stall_ns, 0);
    window_set(&w, WINDOW_wait_ns, 0);
    window_set(&w, WINDOW_reads, 0);
    window_set(&w, WINDOW_writes, 0);
    tally_add(&t, &f, &w);
    assert_true(t.busy_ns == 8000000);
    assert_true(t.service_ns > 0 && t.service_ns < 1000000); /* of the first window alone */
    assert_true(t.compute_ns > 6900000 && t.compute_ns < 7100000);
}

static void times_elsewhere_are_of_all_threads(void **state)
{
    struct machine_figures f = figures();
    struct window w = busy_window(100), held = busy_window(100);
    struct tally free = {0}, capped = {0};

    (void)state;
    window_set(&held, WINDOW_threads, 16);
    window_set(&held, WINDOW_cap, 4);
    tally_add(&free, &f, &w);
    tally_add(&capped, &f, &held);
    assert_true(capped.placed_ns == free.placed_ns);
    assert_true(capped.dram_ns < 0.5 * free.dram_ns); /* DRAM feeds all of them */
    window_set(&held, WINDOW_cap, 16);
    capped = (struct tally){0};
    tally_add(&capped, &f, &held);
    assert_true(capped.dram_ns == free.dram_ns && capped.pm_ns == free.pm_ns);
}

static void windows_that_tell_nothing_predict_nothing(void **state)
{
    struct machine_figures f = figures();
    struct window asleep = busy_window(0), hints = {0};
    struct tally t = {0};

    (void)state;
    window_set(&asleep, WINDOW_busy_ns, 1000);
    window_set(&asleep, WINDOW_stall_ns, 500);
    window_set(&asleep, WINDOW_instructions, 500);
    window_set(&hints, WINDOW_elapsed_ns, 1000000);
    window_set(&hints, WINDOW_faults, 7);
    tally_add(&t, &f, &asleep);
    tally_add(&t, &f, &hints);
    assert_int_equal(t.windows, 2);
    assert_int_equal(t.judged, 0);
    assert_true(t.placed_ns == 0 && t.last_pm == 0);
    assert_int_equal(t.sum[WINDOW_faults], 7);
    assert_int_equal(t.sum[WINDOW_threads], 0); /* cannot be added up */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_left_out_whole),
        cmocka_unit_test(strings_are_json),
        cmocka_unit_test(a_trace_covers_its_run_however_long),
        cmocka_unit_test(lines_that_must_stay_cannot_overflow),
        cmocka_unit_test(a_line_that_is_too_long_is_taken_back),
        cmocka_unit_test(predictions_are_anchored_at_what_was_measured),
        cmocka_unit_test(computing_is_told_apart_from_waiting),
        cmocka_unit_test(times_elsewhere_are_of_all_threads),
        cmocka_unit_test(windows_that_tell_nothing_predict_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
