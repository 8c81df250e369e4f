/* SPDX-License-Identifier: BSD-2-Clause
 * The media model against the papers' figures (000: HMMSched, 002: memos, 003: Tahoe, 004:
 * application awareness; the project's digest) and against arithmetic on the presets.
 * Bounds come from there; the reason of each tolerance stands beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "model/media.h"

#define PS_PER_US   ((int64_t)1000000)
#define MAX_THREADS 64

static struct emu_params preset(const char *name)
{
    struct emu_params p;
    assert_int_equal(emu_params_preset(name, &p), 0);
    return p;
}

#define within(value, want, tolerance) within_at(value, want, tolerance, __FILE__, __LINE__)
static void within_at(double value, double want, double tolerance, const char *file, int line)
{
    if (value < want - tolerance || value > want + tolerance) {
        print_error("%s:%d: %.4g is not %.4g +- %.4g\n", file, line, value, want, tolerance);
        fail();
    }
}

/* A group of like threads. */
struct group {
    int threads;
    struct emu_batch batch; /* what each does again and again */
};

struct outcome {
    double gbs[2];        /* moved by each group on both media */
    int64_t booked_ahead; /* the furthest that anybody's batch reached */
};

/* Both groups on one machine for `us` of virtual time; whoever has the least time goes next. */
static struct outcome run(const char *machine, const struct group *a, const struct group *b,
                          int64_t us)
{
    struct emu_media *m = calloc(1, sizeof(*m));
    struct emu_past past[MAX_THREADS] = {0};
    struct emu_params p = preset(machine);
    struct emu_costs c;
    struct outcome r = {.booked_ahead = 0};
    int64_t time[MAX_THREADS] = {0}, wait, units[2] = {0}, warm = us * PS_PER_US / 4;
    int n = a->threads + (b ? b->threads : 0);

    emu_costs_init(&c, &p);
    for (;;) {
        const struct emu_batch *batch;
        int64_t start;
        int t = 0;
        for (int i = 1; i < n; i++)
            if (time[i] < time[t])
                t = i;
        start = time[t];
        if (start >= us * PS_PER_US)
            break;
        batch = t < a->threads ? &a->batch : &b->batch;
        if (start >= warm)
            for (int tier = 0; tier < EMU_TIERS; tier++)
                units[t >= a->threads] += batch->read_units[tier] + batch->write_units[tier];
        time[t] = emu_media_settle(m, &c, &past[t], start, batch, &wait);
        assert_true(wait >= 0 && time[t] > start);
        if (time[t] - start > r.booked_ahead)
            r.booked_ahead = time[t] - start;
    }
    for (int g = 0; g < 2; g++)
        r.gbs[g] = (double)units[g] * 64 * 1000 / (double)(us * PS_PER_US - warm);
    free(m);
    return r;
}

/* A benchmark of bandwidth: batches of 20 us of one line after the other, each with the time
 * that a thread stands still for it and 0.9 ns of computing (a vector load, a loop). */
static struct group reader(const char *machine, enum emu_tier t, int threads)
{
    struct group g = {.threads = threads};
    struct emu_params p = preset(machine);
    struct emu_costs c;
    int64_t n;
    emu_costs_init(&c, &p);
    n = 20 * PS_PER_US / (c.miss_ps[t][EMU_MISS_STREAM] + 900);
    g.batch.cpu_ps = n * 900;
    g.batch.stall_ps[t] = n * c.miss_ps[t][EMU_MISS_STREAM];
    g.batch.read_units[t] = (uint32_t)n;
    return g;
}

/* Stores past the caches, which order and fetch nothing: in 004's benchmark 10 threads write
 * 68 GB/s to six channels, so they can not have read as much beside it. */
static struct group writer(const char *machine, enum emu_tier t, int threads)
{
    struct group g = {.threads = threads};
    struct emu_params p = preset(machine);
    struct emu_costs c;
    int64_t n;
    emu_costs_init(&c, &p);
    n = 20 * PS_PER_US / (c.writeback_ps[t] + 900);
    g.batch.cpu_ps = n * 900;
    g.batch.stall_ps[t] = n * c.writeback_ps[t];
    g.batch.write_units[t] = (uint32_t)n;
    return g;
}

/* Random: each line moves a block. */
static struct group random_writer(int threads)
{
    struct group g = writer("optane", EMU_PM, threads);
    g.batch.write_units[EMU_PM] *= 4;
    return g;
}

static double alone(const struct group *g)
{
    return run("optane", g, NULL, 8000).gbs[0];
}

static double lost(const struct group *g, const struct group *neighbour)
{
    return 1 - run("optane", g, neighbour, 8000).gbs[0] / alone(g);
}

/* 000 Table I and the ratios of its section VI, 003 section IV. Exact: it is division. */
static void latency_ratios_are_the_papers(void **state)
{
    static const struct {
        const char *name;
        double read, write;
    } want[] = {{"stt-ram", 1, 3}, {"pram", 3, 8}, {"remote-numa", 1.89, 1.89}, {"custom", 1, 1}};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct emu_params p = preset(want[i].name);
        struct emu_costs c;
        emu_costs_init(&c, &p);
        within((double)c.miss_ps[EMU_PM][EMU_MISS_DEPENDENT] /
                   (double)c.miss_ps[EMU_DRAM][EMU_MISS_DEPENDENT],
               want[i].read, 0.001);
        within((double)c.writeback_ps[EMU_PM] / (double)c.writeback_ps[EMU_DRAM], want[i].write,
               0.001);
    }
}

/* Media that many ask give what the preset says, or up to 6 % less: queueing slows those
 * who ask. */
static void bandwidth_is_the_presets(void **state)
{
    (void)state;
    for (size_t i = 0; i < emu_preset_count(); i++) {
        const char *name = emu_preset_name(i);
        struct emu_params p = preset(name);
        for (int t = 0; t < EMU_TIERS; t++) {
            struct group r = reader(name, (enum emu_tier)t, 60),
                         w = writer(name, (enum emu_tier)t, 60);
            double read = (double)p.medium[t].read_mbs / 1000,
                   write = (double)p.medium[t].write_mbs / 1000;
            within(run(name, &r, NULL, 8000).gbs[0], 0.97 * read, 0.035 * read);
            within(run(name, &w, NULL, 8000).gbs[0], 0.97 * write, 0.035 * write);
        }
    }
}

/* 004 section V: 94 and 68 GB/s from DRAM and 13 from PM with 10 threads. 5 %: the paper gives
 * two digits, and 89.3 beside 94 for the same thing. */
static void ten_threads_take_what_004_measured(void **state)
{
    struct group read = reader("optane", EMU_DRAM, 10), write = writer("optane", EMU_DRAM, 10),
                 pm = reader("optane", EMU_PM, 10);
    (void)state;
    within(alone(&read), 94, 0.05 * 94);
    within(alone(&write), 68, 0.05 * 68);
    within(alone(&pm), 13, 0.05 * 13);
}

/* 004 section V, random writers at PM against DRAM's sequential writes: the share lost. 2 points:
 * the law has one constant for five figures and is 1.5 off at worst. */
static void pm_writers_take_drams_writes_as_004_measured(void **state)
{
    static const struct {
        int threads;
        double lost;
    } want[] = {{1, 0.338}, {2, 0.682}, {4, 0.899}, {8, 0.967}, {10, 0.976}};
    struct group dram = writer("optane", EMU_DRAM, 10);
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        struct group pm = random_writer(want[i].threads);
        within(lost(&dram, &pm), want[i].lost, 0.02);
    }
}

/* 94 to 18 GB/s and 89.3 to 18.3: 80 and 79 %, beside 10 sequential readers. 3 points: 1 for
 * the paper's two figures, 2 as above. */
static void pm_readers_take_drams_reads_as_004_measured(void **state)
{
    struct group dram = reader("optane", EMU_DRAM, 10), pm = reader("optane", EMU_PM, 10),
                 writers = random_writer(10), out = writer("optane", EMU_DRAM, 10);
    double by_readers = lost(&dram, &pm);
    (void)state;
    within(by_readers, 0.795, 0.03);
    /* 'Random writes and sequential reads to PM have a more serious interference on write and
     * read bandwidth of DRAM, respectively.' */
    assert_true(lost(&dram, &writers) < by_readers);
    assert_true(lost(&out, &pm) < lost(&out, &writers));
}

/* 13 to 11 GB/s 'at most', by reads or by writes of 10 threads. 2 points. */
static void dram_traffic_hardly_hurts_pm(void **state)
{
    struct group pm = reader("optane", EMU_PM, 10), in = reader("optane", EMU_DRAM, 10),
                 out = writer("optane", EMU_DRAM, 10);
    (void)state;
    within(lost(&pm, &in), 0.15, 0.02);
    within(lost(&pm, &out), 0.15, 0.02);
}

/* A medium behind a controller of its own, and a neighbour that only computes. */
static void who_shares_nothing_loses_nothing(void **state)
{
    struct group dram = reader("optane", EMU_DRAM, 10), pm = random_writer(10),
                 computing = {.threads = 10, .batch = {.cpu_ps = 20 * PS_PER_US}};
    (void)state;
    within(run("cxl", &dram, &pm, 4000).gbs[0] / run("cxl", &dram, NULL, 4000).gbs[0], 1, 0.001);
    within(lost(&dram, &computing), 0, 0.001);
}

/* One thread that uses both media is the same with and without interference. */
static void nobody_stands_in_his_own_way(void **state)
{
    struct group g = writer("optane", EMU_PM, 1);
    struct emu_params p = preset("optane"), none = p;
    int64_t end[2], wait;
    (void)state;
    none.ctl_read_pct = none.ctl_write_pct = none.ctl_cross_pct = 0;
    g.batch.read_units[EMU_DRAM] = g.batch.write_units[EMU_DRAM] = 500;
    /* Also one that settles every 2 us: its own traces are those of many batches. */
    for (int parts = 1; parts <= 10; parts += 9) {
        struct emu_batch b = g.batch;
        for (int t = 0; t < EMU_TIERS; t++) {
            b.stall_ps[t] /= parts;
            b.read_units[t] /= (uint32_t)parts;
            b.write_units[t] /= (uint32_t)parts;
        }
        b.cpu_ps /= parts;
        for (int k = 0; k < 2; k++) {
            struct emu_media *m = calloc(1, sizeof(*m));
            struct emu_past past = {0};
            struct emu_costs c;
            emu_costs_init(&c, k ? &none : &p);
            end[k] = 0;
            for (int i = 0; i < 200; i++)
                end[k] = emu_media_settle(m, &c, &past, end[k], &b, &wait);
            free(m);
        }
        within((double)end[0] / (double)end[1], 1, 0.001);
    }
}

/* Nobody starves: 50 threads of each kind against all others; a batch ends within what the law
 * allows (41.5 times) of what the bandwidth alone would make of it. */
static void interference_is_bounded(void **state)
{
    struct group dram = writer("optane", EMU_DRAM, 30), pm = random_writer(30);
    struct outcome r = run("optane", &dram, &pm, 100000);
    double most;
    (void)state;
    assert_true(r.gbs[0] > 0.9 * 75 / 41.5 && r.gbs[0] < 3);
    within(r.gbs[1], 4.6 / 1.18, 0.2);
    /* 30 threads wait for each other's lines, DRAM's at 64 / 75 ns and 41.5 times that, PM's at
     * 64 / 4.6 and 1.18 times that; twice, for books are kept after the fact. */
    print_message("%.0f us ahead\n", (double)r.booked_ahead / 1e6);
    most = 30 * dram.batch.write_units[EMU_DRAM] * 64 / 75.0 * 41.5;
    if (most < 30 * pm.batch.write_units[EMU_PM] * 64 / 4.6 * 1.18)
        most = 30 * pm.batch.write_units[EMU_PM] * 64 / 4.6 * 1.18;
    assert_true((double)r.booked_ahead < 2 * most * 1000);
}

/* Whoever comes first in real time: the same group, the order of equals turned round by odd
 * starts, gives the same bandwidth. 2 %: what the machine promises. */
static void order_does_not_matter(void **state)
{
    struct group dram = writer("optane", EMU_DRAM, 10), pm = random_writer(4);
    struct outcome a = run("optane", &dram, &pm, 20000), b = run("optane", &pm, &dram, 20000);
    (void)state;
    within(a.gbs[0], b.gbs[1], 0.02 * b.gbs[1]);
    within(a.gbs[1], b.gbs[0], 0.02 * b.gbs[0]);
}

/* A bandwidth-bound program (STREAM's triad: 24 elements are 3 lines read, 1 written back) with
 * n threads: speed-up over one. Its demand is the model's: misses of a stream, write-backs, and
 * 12 ns of computing for 8 elements. */
static double triad_speed(const char *machine, enum emu_tier t, int threads)
{
    struct emu_params p = preset(machine);
    struct emu_costs c;
    struct group g = {.threads = threads};
    int64_t stall, n;

    emu_costs_init(&c, &p);
    stall = 3 * c.miss_ps[t][EMU_MISS_STREAM] + c.writeback_ps[t];
    n = 20 * PS_PER_US / (stall + 12000);
    g.batch.cpu_ps = n * 12000;
    g.batch.stall_ps[t] = n * stall;
    g.batch.read_units[t] = (uint32_t)(3 * n);
    /* Blocks that do not combine are written wholly. */
    g.batch.write_units[t] =
        (uint32_t)(n * (t == EMU_PM ? 100 + ((1 << c.block_shift) - 1) * p.scatter_pct : 100) /
                   100);
    return run(machine, &g, NULL, 4000).gbs[0];
}

/* Issue: 'PM saturates at 3 to 5 threads, DRAM does not before 12'. Saturated: 004's rule, one
 * more thread brings less than a tenth. */
static int saturates_at(const char *machine, enum emu_tier t)
{
    double before = triad_speed(machine, t, 1);
    for (int n = 2; n <= 20; n++) {
        double now = triad_speed(machine, t, n);
        if (now < 1.1 * before && now / before < 1 + 0.5 / (n - 1))
            return n - 1;
        before = now;
    }
    return 20;
}

static void pm_saturates_early_and_dram_does_not(void **state)
{
    static const char *const shared[] = {"pram",        "stt-ram", "cxl",
                                         "remote-numa", "custom",  "optane"};
    (void)state;
    assert_in_range(saturates_at("pram", EMU_PM), 3, 5);
    /* 004 section IV: a program that reads 2.3 and writes 1 GB/s with one thread 'will
     * immediately exceed the upper limit of PM', and its optimum for others is 4. */
    assert_in_range(saturates_at("optane", EMU_PM), 1, 4);
    for (int i = 0; i < 6; i++) {
        print_message("%s: PM %d DRAM %d\n", shared[i], saturates_at(shared[i], EMU_PM),
                      saturates_at(shared[i], EMU_DRAM));
        assert_true(saturates_at(shared[i], EMU_DRAM) >= 12);
    }
}

/* 004 section III: ocean_cp moves 40.9 GB/s in and 15.3 out on DRAM with 8 threads and runs 17.5
 * times as long on PM. Bandwidth alone; a quarter: 2.45 + 0.8 GB/s is what it got from PM. */
static void ocean_cp_loses_what_004_measured(void **state)
{
    struct emu_params p = preset("optane");
    struct emu_costs c;
    struct group dram = {.threads = 8}, pm = dram;
    double slower;
    (void)state;
    emu_costs_init(&c, &p);
    /* Of 20 us a thread moves 1/8 of it: 1598 and 598 lines. */
    dram.batch.cpu_ps = pm.batch.cpu_ps = 5 * PS_PER_US;
    dram.batch.stall_ps[EMU_DRAM] = 12 * PS_PER_US;
    dram.batch.read_units[EMU_DRAM] = pm.batch.read_units[EMU_PM] = 1598;
    dram.batch.write_units[EMU_DRAM] = 598;
    pm.batch.write_units[EMU_PM] = (uint32_t)(598 * (1 + 3 * 0.95));
    pm.batch.stall_ps[EMU_PM] =
        12 * PS_PER_US * c.miss_ps[EMU_PM][EMU_MISS_STREAM] / c.miss_ps[EMU_DRAM][EMU_MISS_STREAM];
    slower = run("optane", &dram, NULL, 8000).gbs[0] / (1598 + 598) /
             (run("optane", &pm, NULL, 8000).gbs[0] / (1598 + 598 * (1 + 3 * 0.95)));
    print_message("ocean_cp: %.1f\n", slower);
    within(slower, 17.5, 0.25 * 17.5);
}

static void late_bookings_find_their_own_time(void **state)
{
    struct emu_media *m = calloc(1, sizeof(*m));
    (void)state;
    /* Somebody far ahead does not delay one who comes later with an earlier time. */
    assert_int_equal(emu_media_book(m, EMU_DRAM, 500 * EMU_WINDOW_PS, 3 * EMU_WINDOW_PS),
                     503 * EMU_WINDOW_PS);
    assert_int_equal(emu_media_book(m, EMU_DRAM, 0, EMU_WINDOW_PS / 2), EMU_WINDOW_PS / 2);
    /* Full windows are passed over: 500 to 502 are taken. */
    assert_int_equal(emu_media_book(m, EMU_DRAM, 500 * EMU_WINDOW_PS, EMU_WINDOW_PS),
                     504 * EMU_WINDOW_PS);
    /* The ring has gone round: the past is full, nothing is overwritten. */
    assert_true(emu_media_book(m, EMU_PM, EMU_WINDOWS * EMU_WINDOW_PS, 5) > 0);
    assert_true(emu_media_book(m, EMU_PM, 0, 5) >= EMU_WINDOW_PS);
    free(m);
}

/* Whole blocks: 256 of the 64 bytes for each random write; of cached sequential ones 26 in 100
 * bytes are the program's (2 %: which lines is decided by a hash), and all of bulk ones. */
static void pm_blocks_are_written_whole(void **state)
{
    struct emu_media *m = calloc(1, sizeof(*m));
    struct emu_params p = preset("optane");
    uint32_t in_order = 0, cached = 0, random = 0, read = 0;
    struct emu_costs c;
    (void)state;
    emu_costs_init(&c, &p);
    for (uint64_t i = 0; i < 40000; i++) {
        cached += emu_media_units(m, &c, EMU_PM, 1000000 + i, true);
        read += emu_media_units(m, &c, EMU_PM, 1000000 + i, false);
    }
    for (uint64_t i = 0; i < 4000; i++)
        random += emu_media_units(m, &c, EMU_PM, i * 7919 % 1000003 * 64, true);
    c.scatter_pct = 0;
    for (uint64_t i = 0; i < 4000; i++)
        in_order += emu_media_units(m, &c, EMU_PM, 1000000 + i, true);
    within(40000.0 / cached, 0.26, 0.02 * 0.26);
    assert_int_equal(read, 40000);
    assert_int_equal(in_order, 4000);
    assert_in_range(random, 15900, 16000);
    assert_int_equal(emu_media_units(m, &c, EMU_DRAM, 77, true), 1);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(latency_ratios_are_the_papers),
        cmocka_unit_test(bandwidth_is_the_presets),
        cmocka_unit_test(ten_threads_take_what_004_measured),
        cmocka_unit_test(pm_writers_take_drams_writes_as_004_measured),
        cmocka_unit_test(pm_readers_take_drams_reads_as_004_measured),
        cmocka_unit_test(dram_traffic_hardly_hurts_pm),
        cmocka_unit_test(who_shares_nothing_loses_nothing),
        cmocka_unit_test(nobody_stands_in_his_own_way),
        cmocka_unit_test(interference_is_bounded),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(pm_saturates_early_and_dram_does_not),
        cmocka_unit_test(ocean_cp_loses_what_004_measured),
        cmocka_unit_test(late_bookings_find_their_own_time),
        cmocka_unit_test(pm_blocks_are_written_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
