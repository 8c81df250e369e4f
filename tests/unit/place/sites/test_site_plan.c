/* SPDX-License-Identifier: BSD-2-Clause
 * The plan of sites: never more than the share, near the exact optimum (brute force over small
 * cases), the better the more DRAM there is, the same whatever the order of sites. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/site_plan.h"
#include "rounds.h"

static struct plan_scratch scratch;
static struct site_plan plan, again;
static struct plan_site site[PLAN_MAX], turned[PLAN_MAX];
static uint64_t state_of_random;

static uint32_t below(uint32_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state_of_random >> 33) % n);
}

static struct machine_figures figures(const char *name)
{
    struct machine_figures f;
    assert_int_equal(figures_default(name, &f), 0);
    return f;
}

static struct plan_work work_of(const struct plan_site *s, unsigned n, double exposure,
                                double threads)
{
    struct work k = {.exposure = exposure, .foreseen = 0.5, .threads = threads};
    for (unsigned i = 0; i < n; i++) {
        k.reads += s[i].reads;
        k.writes += s[i].writes;
    }
    k.compute_ns = 20 * k.reads;
    return (struct plan_work){.all = k, .in = {k}, .n = 1};
}

/* Sites of all kinds of sizes; every fourth is idle, large or read only. */
static unsigned random_sites(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t pages = 1 + below(1u << (1 + below(11)));
        site[i] = (struct plan_site){.bytes = pages * HY_PAGE,
                                     .block = pages * HY_PAGE,
                                     .reads = below(2000000),
                                     .writes = below(3) ? below(1000000) : 0,
                                     .key = i + 1};
        if (below(4) == 0)
            site[i].reads = site[i].writes = 0;
    }
    return n;
}

static uint64_t charged_of(const struct plan_site *s)
{
    uint64_t block = s->block && s->block < s->bytes ? s->block : s->bytes;
    uint64_t count = (s->bytes + block / 2) / block;
    return count * site_plan_charge(s->bytes / count);
}

static double saved(const struct site_plan *p, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (p->place[i].dram_bytes > 0)
            sum += p->read_ns * site[i].reads + p->write_ns * site[i].writes;
    return sum;
}

static void assert_sound(const struct site_plan *p, unsigned n, uint64_t share)
{
    static bool seen[PLAN_MAX];
    uint64_t sum = 0;
    bool pm_began = false;

    memset(seen, 0, sizeof(seen));
    assert_int_equal(p->n, n);
    for (unsigned k = 0; k < n; k++) {
        const struct plan_tier *at = &p->place[p->order[k]];
        assert_false(seen[p->order[k]]);
        seen[p->order[k]] = true;
        assert_int_equal(at->rank, k);
        assert_int_equal(at->tier == HY_DRAM, at->dram_bytes > 0);
        pm_began |= at->tier == HY_PM;
        assert_false(pm_began && at->tier == HY_DRAM);
        sum += at->dram_bytes;
    }
    assert_int_equal(sum, p->dram_bytes);
    assert_true(sum <= share);
}

/* --- properties over random sites ------------------------------------------------ */

static const char *const machines[] = {"optane", "pram", "cxl", "stt-ram"};

static double best_time(const struct machine_figures *f, const struct work *k, unsigned n,
                        uint64_t share)
{
    double best = INFINITY;
    for (unsigned set = 0; set < 1u << n; set++) {
        uint64_t bytes = 0;
        double reads = k->reads, writes = k->writes, t;
        for (unsigned i = 0; i < n; i++) {
            if (set >> i & 1) {
                bytes += charged_of(&site[i]);
                reads -= site[i].reads;
                writes -= site[i].writes;
            }
        }
        if (bytes > share)
            continue;
        t = work_time(f, k, k->reads > 0 ? fmax(reads / k->reads, 0) : 0,
                      k->writes > 0 ? fmax(writes / k->writes, 0) : 0, k->threads)
                .total_ns;
        best = fmin(best, t);
    }
    return best;
}

/* Sets whose times differ by less are as good as each other: the prediction errs by that. */
#define AS_GOOD 1.02

/* The time and the gain over all-PM, beside those of the best of all subsets by the same
 * prediction. */
static void test_near_the_optimum(void **state)
{
    (void)state;
    double worst = 1, sum = 0;
    unsigned cases = 0;

    state_of_random = 7;
    for (unsigned round = 0; round < rounds(240); round++) {
        struct machine_figures f = figures(machines[round % 4]);
        unsigned n = random_sites(2 + below(10));
        struct plan_work k = work_of(site, n, 0.1 + 0.09 * below(10), 1 + below(16));
        uint64_t all = 0;
        for (unsigned i = 0; i < n; i++)
            all += charged_of(&site[i]);
        uint64_t share = all / (2 + below(5));
        site_plan_make(&f, &k, site, n, share, &scratch, &plan);
        assert_sound(&plan, n, share);
        assert_true(plan.exact);
        double pm = site_plan_time_at(&f, &k, 1);
        double got = pm - site_plan_time(&f, &k, site, &plan);
        double best = pm - best_time(&f, &k.in[0], n, share);
        assert_true(got <= best * (1 + 1e-6) + 1);
        assert_true(pm - got <= (pm - best) * AS_GOOD);
        if (!(best > pm * 0.05)) /* little to be had, and by chance */
            continue;
        worst = fmin(worst, got / best);
        sum += got / best;
        cases++;
    }
    print_message("gain over that of the exact optimum: worst %.4f, mean %.5f of %u\n", worst,
                  sum / cases, cases);
    assert_true(cases * 240 > 100 * rounds(240));
    assert_true(sum / cases > 0.995);
}

static void test_order_does_not_matter(void **state)
{
    (void)state;
    struct machine_figures f = figures("pram");

    state_of_random = 11;
    for (unsigned round = 0; round < 60; round++) {
        unsigned n = random_sites(3 + below(60)), step = 1;
        struct plan_work k = work_of(site, n, 0.2, 8);
        uint64_t share = (1 + below(64)) * 64 * HY_KIB;
        if (round % 3 == 0) /* twins */
            for (unsigned i = 1; i < n; i += 2) {
                site[i] = site[i - 1];
                site[i].key = i + 1;
            }
        while (step == 1 || n % step == 0)
            step = 2 + below(40);
        bool coprime = true;
        for (unsigned d = 2; d <= step; d++)
            coprime &= step % d != 0 || n % d != 0;
        if (!coprime)
            continue;
        for (unsigned i = 0; i < n; i++)
            turned[i] = site[(i * step) % n];
        site_plan_make(&f, &k, site, n, share, &scratch, &plan);
        site_plan_make(&f, &k, turned, n, share, &scratch, &again);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(again.place[i].dram_bytes, plan.place[(i * step) % n].dram_bytes);
    }
}

static void test_more_dram_is_never_worse(void **state)
{
    (void)state;

    state_of_random = 5;
    for (unsigned round = 0; round < rounds(40); round++) {
        struct machine_figures f = figures(machines[round % 4]);
        unsigned n = random_sites(2 + below(30));
        struct plan_work k = work_of(site, n, 0.1 + 0.2 * below(4), 1 + below(16));
        double last = INFINITY;
        for (uint64_t share = 0; share < 24 * HY_MIB; share += 701 * HY_KIB) {
            site_plan_make(&f, &k, site, n, share, &scratch, &plan);
            assert_sound(&plan, n, share);
            double t = site_plan_time(&f, &k, site, &plan);
            assert_true(t <= last * AS_GOOD);
            last = t;
        }
    }
}

/* As many as a profile can have: still sound, and at least as good as taking them by density. */
static void test_many_sites(void **state)
{
    (void)state;
    struct machine_figures f = figures("optane");

    state_of_random = 3;
    for (unsigned round = 0; round < 4; round++) {
        unsigned n = random_sites(PLAN_MAX);
        struct plan_work k = work_of(site, n, 0.25, 8);
        uint64_t share = (40 + 100 * round) * HY_MIB, room = share;
        site_plan_make(&f, &k, site, n, share, &scratch, &plan);
        assert_sound(&plan, n, share);
        double greedy = 0, got = saved(&plan, n);
        for (unsigned r = 0; r < n; r++) { /* the plan's own order is not by density: sort */
            unsigned best = 0;
            double top = -1;
            for (unsigned i = 0; i < n; i++) {
                double w = plan.read_ns * site[i].reads + plan.write_ns * site[i].writes;
                double d = site[i].bytes ? w / (double)charged_of(&site[i]) : -1;
                if (d > top) {
                    top = d;
                    best = i;
                }
            }
            if (top <= 0)
                break;
            if (charged_of(&site[best]) <= room) {
                room -= charged_of(&site[best]);
                greedy += plan.read_ns * site[best].reads + plan.write_ns * site[best].writes;
            }
            turned[best] = site[best];
            site[best].bytes = 0;
        }
        assert_true(got >= greedy * 0.9999);
    }
}

/* --- what decides -------------------------------------------------------------------- */

static struct plan_site one(uint64_t mib, double reads, double writes, uint64_t key)
{
    return (struct plan_site){.bytes = mib * HY_MIB,
                              .block = mib * HY_MIB,
                              .reads = reads * 1e6,
                              .writes = writes * 1e6,
                              .key = key};
}

static void test_class_decides_what_counts(void **state)
{
    (void)state;
    struct machine_figures f = figures("pram");
    /* Room for one: the one that is read, or the one that is written half as much. */
    site[0] = one(8, 10, 0, 1);
    site[1] = one(8, 4, 4, 2);
    struct plan_work chase = work_of(site, 2, 1, 1), stream = work_of(site, 2, 0.1, 8);
    stream.in[0].foreseen = stream.all.foreseen = 1;
    site_plan_make(&f, &chase, site, 2, 9 * HY_MIB, &scratch, &plan);
    assert_int_equal(plan.order[0], 0);
    assert_int_equal(plan.place[0].tier, HY_DRAM);
    site_plan_make(&f, &stream, site, 2, 9 * HY_MIB, &scratch, &plan);
    assert_int_equal(plan.order[0], 1);
    assert_int_equal(plan.place[1].tier, HY_DRAM);
    assert_true(plan.write_ns > 2 * plan.read_ns);
}

/* A block of which an eighth has nearly all of the lines: that part goes before blocks that are
 * used more than it on average. */
static void test_hot_parts_first(void **state)
{
    static struct profile_site told = {.has_heat = true};
    struct machine_figures f = figures("optane");
    (void)state;
    for (unsigned b = 0; b < PROFILE_BINS; b++)
        told.heat[b] = b >= 12 && b < 16 ? 2400 : 14;
    site[0] = one(16, 4, 1, 1);
    site[1] = one(2, 1, 0.25, 2);
    site[0].parts = true;
    struct plan_work k = work_of(site, 2, 0.119, 8);
    site_plan_make(&f, &k, site, 2, 4 * HY_MIB, &scratch, &plan);
    assert_int_equal(plan.order[0], 1);
    double without = site_plan_time(&f, &k, site, &plan);
    assert_true(site_heat_levels(site[0].heat = &told, site[0].level));
    site_plan_make(&f, &k, site, 2, 4 * HY_MIB, &scratch, &plan);
    assert_int_equal(plan.order[0], 0);
    assert_true(plan.place[0].why == PLAN_PART && plan.place[1].why == PLAN_CHOSEN);
    assert_int_equal(plan.place[0].dram_bytes, 2 * HY_MIB);
    struct work at = site_plan_lines(&k, site, &plan);
    assert_float_equal(at.pm_reads, 4e6 * 28 * 14 / (4 * 2400 + 28 * 14) / 5e6, 1e-6);
    assert_true(site_plan_time(&f, &k, site, &plan) < 0.8 * without);
    site_plan_make(&f, &k, site, 2, 30 * HY_MIB, &scratch, &plan);
    assert_int_equal(plan.place[0].why, PLAN_CHOSEN);
}

/* With most on DRAM, PM is never full on average, so a line written there looks cheap. Written in a
 * burst it is not: what is a little better on average only does not take the DRAM from it. */
static void test_bursts_of_writes(void **state)
{
    (void)state;
    struct machine_figures f = figures("optane");
    site[0] = one(14, 3.3, 1.04, 1);   /* is on DRAM in any case */
    site[1] = one(2, 0.033, 0.032, 2); /* written */
    site[2] = one(32, 4.46, 0, 3);     /* read, and split */
    site[2].parts = true;
    struct plan_work k = work_of(site, 3, 0.119, 8);
    k.in[0].foreseen = 0.9;
    k.in[0].compute_ns = 136e6;
    k.all = k.in[0];
    double dram = site_plan_time_at(&f, &k, 0);
    for (unsigned mib = 16; mib <= 24; mib += 2) {
        site_plan_make(&f, &k, site, 3, mib * HY_MIB, &scratch, &plan);
        assert_true(site_plan_time(&f, &k, site, &plan) < 4 * dram);
        assert_int_equal(plan.place[0].tier, HY_DRAM);
        assert_int_equal(plan.place[1].tier, HY_DRAM);
    }
}

/* One is written in bursts, the other is read all the time and more: mixed evenly PM would bear the
 * writes, while they come it does not. */
static void test_behaviours(void **state)
{
    (void)state;
    struct machine_figures f = figures("optane");
    const struct work like = {.exposure = 0.1, .foreseen = 1, .threads = 4};
    struct work all = like, quiet = like, burst = like;
    all.reads = 4.4e6;
    quiet.reads = 4e6;
    burst.reads = 0.4e6;
    all.writes = burst.writes = 0.3e6;
    all.compute_ns = quiet.compute_ns = 300e6;
    struct plan_work mixed = {.all = all, .in = {all}, .n = 1};
    struct plan_work told = {.all = all, .in = {quiet, burst}, .n = 2};
    site[0] = one(8, 4, 0, 1);
    site[1] = one(8, 0.4, 0.3, 2);
    site[0].reads_in[0] = site[1].reads_in[1] = site[1].writes_in[1] = 1;
    site_plan_make(&f, &mixed, site, 2, 8 * HY_MIB, &scratch, &plan);
    site_plan_make(&f, &told, site, 2, 8 * HY_MIB, &scratch, &again);
    assert_int_equal(plan.place[0].tier, HY_DRAM);
    assert_int_equal(again.place[1].tier, HY_DRAM);
    assert_int_equal(again.place[0].tier, HY_PM);
    assert_true(site_plan_time(&f, &told, site, &again) <
                0.98 * site_plan_time(&f, &told, site, &plan));
    /* Shares are of the lines of both behaviours. */
    struct work lines = site_plan_lines(&told, site, &plan);
    assert_float_equal(lines.reads, 4.4e6, 1);
    assert_float_equal(lines.pm_reads, 0.4 / 4.4, 1e-6);
    assert_float_equal(lines.pm_writes, 1, 1e-6);
}

static void test_reasons(void **state)
{
    (void)state;
    struct machine_figures f = figures("optane");
    site[0] = one(2, 10, 1, 1);  /* chosen */
    site[1] = one(64, 90, 9, 2); /* larger than all DRAM */
    site[2] = one(16, 40, 4, 3); /* of 1 MiB blocks: in part */
    site[2].block = HY_MIB;
    site[3] = one(4, 2, 0, 4); /* no room */
    site[4] = one(1, 0, 0, 5); /* idle */
    site[5] = one(1, 0, 0, 6); /* named */
    site[5].fixed = true;
    site[6] = one(1, 50, 50, 7); /* named PM, whatever it is worth */
    site[6].fixed = true;
    site[6].tier = HY_PM;
    struct plan_work k = work_of(site, 7, 0.2, 8);
    uint64_t share = 12 * HY_MIB;
    site_plan_make(&f, &k, site, 7, share, &scratch, &plan);
    assert_sound(&plan, 7, share);
    assert_int_equal(plan.place[0].why, PLAN_CHOSEN);
    assert_int_equal(plan.place[1].why, PLAN_TOO_LARGE);
    assert_int_equal(plan.place[2].why, PLAN_PART);
    assert_int_equal(plan.place[2].dram_bytes % site_plan_charge(HY_MIB), 0);
    assert_int_equal(plan.place[3].why, PLAN_NO_ROOM);
    assert_int_equal(plan.place[4].why, PLAN_IDLE);
    assert_int_equal(plan.place[5].why, PLAN_NAMED);
    assert_int_equal(plan.place[5].tier, HY_DRAM);
    assert_int_equal(plan.place[6].tier, HY_PM);
    /* Nothing counted: only what is named goes anywhere. */
    site_plan_make(&f, NULL, site, 7, share, &scratch, &plan);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(plan.place[i].tier == HY_DRAM, i == 5);
    site_plan_make(&f, &k, site, 0, share, &scratch, &plan);
    assert_int_equal(plan.n, 0);
    /* Where blocks are split, the best one has all there is beside what is named. */
    site[1].reads *= 10;
    site[1].parts = true;
    k = work_of(site, 7, 0.2, 8);
    site_plan_make(&f, &k, site, 7, share, &scratch, &plan);
    assert_sound(&plan, 7, share);
    assert_int_equal(plan.place[1].why, PLAN_PART);
    assert_true(plan.place[1].dram_bytes > share - HY_MIB - 2 * PLAN_SPLIT);
}

/* --- from a profile ---------------------------------------------------------------------- */

static struct profile_site profile_sites[4];

static struct profile profile_of_three(void)
{
    struct profile p = {.slowdown = 3,
                        .cls = HY_CLASS_BANDWIDTH,
                        .exposure = -1,
                        .foreseen = -1,
                        .footprint = 40 * HY_MIB,
                        .n_sites = 3,
                        .sites = profile_sites};
    memset(profile_sites, 0, sizeof(profile_sites));
    for (unsigned i = 0; i < 3; i++) {
        struct profile_site *s = &profile_sites[i];
        s->n_frames = 2;
        s->frames[0].offset = 0x100 + (i == 2); /* the first two share their leaf */
        s->frames[1].offset = 0x200 + i;
        s->live_bytes = s->max_size = (i + 1) * 4 * HY_MIB;
        s->reads = 1000000 * (i + 1);
    }
    return p;
}

static void test_profile_to_sites(void **state)
{
    (void)state;
    struct machine_figures f = figures("optane");
    struct profile p = profile_of_three();
    struct plan_work k;

    assert_int_equal(site_plan_sites(&p, site), 4); /* 16 MiB belong to no site */
    assert_int_equal(site[3].bytes, 16 * HY_MIB);
    assert_int_equal(site[1].bytes, 8 * HY_MIB);
    assert_int_equal(site_plan_work(&p, &f, &k), 0);
    assert_float_equal(k.in[0].reads, 6e6, 1);
    assert_float_equal(site_plan_time_at(&f, &k, 1) / site_plan_time_at(&f, &k, 0), 3, 0.01);
    p.source.reads = 10000000;
    assert_int_equal(site_plan_sites(&p, site), 4);
    assert_float_equal(site[3].reads, 4e6, 1);
    site[2].reads = 1000; /* less than once through */
    site_plan_split(&p, site);
    assert_true(site[0].parts && site[1].parts && !site[2].parts);
    /* More than pure memory could be: as much as there can be. */
    p.slowdown = 900;
    assert_int_equal(site_plan_work(&p, &f, &k), 0);
    assert_true(k.in[0].compute_ns == 0);
    for (unsigned i = 0; i < 3; i++)
        profile_sites[i].reads = 0;
    assert_int_equal(site_plan_work(&p, &f, &k), -ENODATA);

    for (unsigned i = 0; i < 3; i++)
        profile_sites[i].reads = 1000000 * (i + 1);
    p.n_behaviours = 1; /* one is the whole run */
    p.behaviours[0].reads = 7;
    assert_int_equal(site_plan_work(&p, &f, &k), 0);
    assert_true(k.n == 1 && k.in[0].reads == k.all.reads && k.all.reads >= 6e6);
    p.n_behaviours = 0;
    for (unsigned i = 0; i < 3; i++)
        profile_sites[i].reads = 0;

    /* A leaf that is named: with it all that begin with it. */
    profile_sites[3] = (struct profile_site){.n_frames = 1, .has_tier = true, .tier = HY_PM};
    profile_sites[3].frames[0].offset = 0x100;
    p.n_sites = 4;
    assert_true(site_plan_sites(&p, site) >= 4);
    assert_true(site[0].fixed && site[1].fixed && !site[2].fixed && site[3].fixed);
    assert_int_equal(site[0].tier, HY_PM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_the_optimum),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_more_dram_is_never_worse),
        cmocka_unit_test(test_many_sites),
        cmocka_unit_test(test_class_decides_what_counts),
        cmocka_unit_test(test_behaviours),
        cmocka_unit_test(test_bursts_of_writes),
        cmocka_unit_test(test_hot_parts_first),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_profile_to_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
