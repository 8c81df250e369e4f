/* SPDX-License-Identifier: BSD-2-Clause
 * Classes of random programs: what must hold of every program, wherever its data are. */
#include "classifier_util.h"

#include "rounds.h"

static uint64_t rng = 1;

static double uniform(double lo, double hi)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * ((double)(rng >> 11) / 9007199254740992.0);
}

/* Over several orders of magnitude. */
static double wide(double lo, double hi)
{
    return lo * pow(hi / lo, uniform(0, 1));
}

static struct work random_work(void)
{
    double foreseen = uniform(0, 1);

    /* Streams are waited for a tenth of the latency, by what machines do and the model says. */
    return (struct work){.compute_ns = wide(1e5, 1e10),
                         .reads = wide(1e2, 1e8),
                         .writes = wide(1e1, 1e8),
                         .exposure = uniform(0.05, 0.1 * foreseen + 1 - foreseen),
                         .foreseen = foreseen,
                         .threads = 1};
}

/* What others may tell of themselves: no work is slower with all its data on PM. */
static void test_most_slowdown(void **state)
{
    double nearest = 0;

    (void)state;
    for (unsigned i = 0; i < rounds(20000); i++) {
        struct machine_figures f = machine(figures_name(i % figures_count()));
        struct work k = random_work();
        k.compute_ns *= uniform(0, 1) > 0.5 ? 1e-6 : 1;
        k.exposure = uniform(0, 1);
        double threads = floor(uniform(1, 40));
        double slower =
            work_time(&f, &k, 1, 1, threads).total_ns / work_time(&f, &k, 0, 0, threads).total_ns;
        assert_true(slower <= work_most_slowdown(&f));
        nearest = HY_MAX(nearest, slower / work_most_slowdown(&f));
    }
    assert_true(nearest > 0.6);
}

/* More lines never lower the predicted slowdown, with the data on DRAM; but where PM lacks
 * latency more than bandwidth (cxl), a program that fills DRAM, too, loses but bandwidth. */
static void test_monotone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < rounds(20000); i++) {
        struct machine_figures f = machine(figures_name(i % figures_count()));
        struct work k = random_work();
        struct view v = {0, floor(uniform(1, 20)), i % 2 == 0, 0};
        struct window w = look(&f, &k, &v), more = w;
        enum window_field field = i % 3 ? WINDOW_reads : WINDOW_writes;

        if (i % 5 == 0)
            w.have &= ~(1u << WINDOW_foreseen | 1u << WINDOW_stall_ns | 1u << WINDOW_wait_ns);
        more = w;
        more.value[field] = (uint64_t)((double)w.value[field] * uniform(1, 3)) + 1;
        more.value[WINDOW_foreseen] = w.value[WINDOW_foreseen];
        /* As many as DRAM can carry in the time, and not more: nobody could count those. */
        struct work check = {.reads = (double)more.value[WINDOW_reads],
                             .writes = (double)more.value[WINDOW_writes]};
        if (work_time(&f, &check, 0, 0, 1).service_ns > (double)w.value[WINDOW_elapsed_ns] * 0.8)
            continue;
        struct classification a = judge(f.name, &w, 1), b = judge(f.name, &more, 1);
        double full = HY_MIN(f.medium[HY_DRAM].random_read_mbs / f.medium[HY_PM].random_read_mbs,
                             f.medium[HY_DRAM].seq_read_mbs / f.medium[HY_PM].seq_read_mbs);
        /* Without stalls more writes leave less of the time to have been waiting for reads. */
        double least = HY_MIN(a.slowdown, full) * (i % 5 == 0 ? 0.98 : 0.999);
        if (b.slowdown < least)
            fail_msg("case %d on %s, %.0f threads: %s +%.0f%%, slowdown %.4f -> %.4f", i, f.name,
                     v.threads, field == WINDOW_reads ? "reads" : "writes",
                     100.0 * ((double)more.value[field] / (double)w.value[field] - 1), a.slowdown,
                     b.slowdown);
    }
}

/* Windows of another length say the same. */
static void test_scale(void **state)
{
    (void)state;
    for (unsigned i = 0; i < rounds(5000); i++) {
        struct machine_figures f = machine(figures_name(i % figures_count()));
        struct work k = random_work();
        struct view v = {uniform(0, 1), floor(uniform(1, 20)), i % 2 == 0, 0};
        struct window w = look(&f, &k, &v), longer = w;

        for (int j = 0; j < WINDOW_FIELD_COUNT; j++)
            longer.value[j] *= 64;
        struct classification a = judge(f.name, &w, 2), b = judge(f.name, &longer, 2);
        assert_int_equal(a.cls, b.cls);
        assert_true(fabs(a.slowdown / b.slowdown - 1) < 1e-6);
        assert_true(fabs(a.confidence - b.confidence) < 1e-6);
    }
}

/* Random programs are told the same on DRAM and on PM. */
static void test_placement_property(void **state)
{
    unsigned different = 0;

    (void)state;
    for (unsigned i = 0; i < rounds(5000); i++) {
        struct machine_figures f = machine(figures_name(i % figures_count()));
        struct work k = random_work();
        double threads = floor(uniform(1, 20));
        struct view dram = {0, threads, true, 0}, pm = {1, threads, true, 0};
        struct window a = look(&f, &k, &dram), b = look(&f, &k, &pm);
        struct classification ca = judge(f.name, &a, 2), cb = judge(f.name, &b, 2);

        assert_true(fabs(ca.slowdown / cb.slowdown - 1) < 0.02);
        different += ca.cls != cb.cls; /* on a border, where rounding decides */
    }
    assert_in_range(different, 0, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most_slowdown),
        cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_placement_property),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
