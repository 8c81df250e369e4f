/* SPDX-License-Identifier: BSD-2-Clause
 * Plans of sites that hold memory at different times: in no part of the run more than the share,
 * the same DRAM for those that do not meet, never worse than if all were there at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/site_quota.h"
#include "rounds.h"

#define MIB  ((uint64_t)1 << 20)
#define MOST 40u

static struct plan_scratch scratch;
static struct site_plan plan, always;
static struct plan_site site[PLAN_MAX];
static struct quota_site state[PLAN_MAX];
static uint64_t quota[PLAN_MAX];
static uint64_t state_of_random = 7;

static uint32_t below(uint32_t n)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state_of_random >> 33) % n);
}

static struct machine_figures optane(void)
{
    struct machine_figures f;
    assert_int_equal(figures_default("optane", &f), 0);
    return f;
}

static struct plan_work work_of(unsigned n)
{
    struct work k = {.exposure = 0.3, .foreseen = 0.5, .threads = 4};
    for (unsigned i = 0; i < n; i++) {
        k.reads += site[i].reads;
        k.writes += site[i].writes;
    }
    return (struct plan_work){.all = k, .in = {k}, .n = 1};
}

static void make(unsigned n, uint64_t share, struct site_plan *ret)
{
    struct machine_figures f = optane();
    struct plan_work k = work_of(n);
    site_plan_make(&f, &k, site, n, share, &scratch, ret);
}

static double saved(const struct site_plan *p, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += (double)p->place[i].dram_bytes / (double)site[i].bytes *
               (p->read_ns * site[i].reads + p->write_ns * site[i].writes);
    return sum;
}

/* Thirty-two parts alike, for sites that begin and end anywhere. */
static uint32_t held(double from, double until)
{
    static struct plan_times even;
    for (even.n = 0; even.n < PLAN_TIMES; even.n++)
        even.begin[even.n] = (uint16_t)(even.n * 1000 / PLAN_TIMES);
    return site_times_held(&even, from, until);
}

static void test_parts_of_the_run(void **unused)
{
    (void)unused;
    assert_int_equal(held(0, 0), PLAN_ALWAYS);
    assert_int_equal(held(0, 1), PLAN_ALWAYS);
    assert_int_equal(held(0.5, 0), 0xffff0000);
    assert_int_equal(held(0, 0.49), 0x0000ffff);
    assert_int_equal(held(1, 0), 0x80000000);
    for (unsigned i = 0; i < 2000; i++) /* whatever a file says: at least one part */
        assert_int_not_equal(held(below(1001) / 1000.0, below(1001) / 1000.0), 0);
}

/* Two that follow one another do not meet, however little of the run lies between them; and the
 * largest are told apart where there are more than parts. */
static void test_cuts_are_where_sites_begin_and_end(void **unused)
{
    static struct profile_site sites[100];
    struct profile p = {.sites = sites, .n_sites = 2};
    struct plan_times times;
    (void)unused;
    sites[0] = (struct profile_site){.live_bytes = MIB, .until = 0.714};
    sites[1] = (struct profile_site){.live_bytes = MIB, .from = 0.714};
    site_times_make(&p, &times);
    assert_int_equal(times.n, 2);
    assert_int_equal(site_times_held(&times, 0, 0.714) & site_times_held(&times, 0.714, 0), 0);
    assert_int_equal(site_times_part(&times, 0.713), 0);
    assert_int_equal(site_times_part(&times, 0.714), 1);
    sites[1].from = 0.713; /* a moment together */
    site_times_make(&p, &times);
    assert_int_not_equal(site_times_held(&times, 0, 0.714) & site_times_held(&times, 0.713, 0), 0);
    sites[1].from = 0.714;
    p.n_sites = 100;
    for (unsigned i = 2; i < 100; i++)
        sites[i] = (struct profile_site){.live_bytes = 1 + below(HY_PAGE),
                                         .from = below(1000) / 1000.0,
                                         .until = below(1000) / 1000.0};
    site_times_make(&p, &times);
    assert_int_equal(times.n, PLAN_TIMES);
    for (unsigned t = 1; t < PLAN_TIMES; t++)
        assert_true(times.begin[t - 1] < times.begin[t]);
    assert_int_equal(site_times_held(&times, 0, 0.714) & site_times_held(&times, 0.714, 0), 0);
}

static void test_those_that_do_not_meet_share(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 2; i++)
        site[i] = (struct plan_site){
            .bytes = MIB, .block = MIB, .reads = 1e6, .writes = 1e5, .key = i + 1};
    site[0].held = held(0, 0.4);
    site[1].held = held(0.5, 0);
    make(2, MIB, &plan);
    assert_int_equal(plan.place[0].tier, HY_DRAM);
    assert_int_equal(plan.place[1].tier, HY_DRAM);
    site[1].held = held(0.3, 0);
    make(2, MIB, &plan);
    assert_int_not_equal(plan.place[0].tier, plan.place[1].tier);
}

/* One that holds its DRAM for the whole run gives way to many that use the same one after the
 * other, each worth less. */
static void test_many_short_ones_beat_a_long_one(void **unused)
{
    (void)unused;
    site[0] = (struct plan_site){.bytes = MIB, .block = MIB, .reads = 1e6, .key = 1};
    for (unsigned i = 1; i <= 8; i++)
        site[i] = (struct plan_site){.bytes = MIB,
                                     .block = MIB,
                                     .reads = 5e5,
                                     .held = held((i - 1) / 8.0, i / 8.0 - 0.01),
                                     .key = i + 1};
    make(9, MIB, &plan);
    assert_int_equal(plan.place[0].tier, HY_PM);
    for (unsigned i = 1; i <= 8; i++)
        assert_int_equal(plan.place[i].tier, HY_DRAM);
}

static unsigned random_sites(void)
{
    unsigned n = 1 + below(MOST);
    for (unsigned i = 0; i < n; i++) {
        uint64_t pages = 1 + below(512);
        double from = below(1000) / 1000.0;
        site[i] = (struct plan_site){.bytes = pages * HY_PAGE * (1 + below(3)),
                                     .block = pages * HY_PAGE,
                                     .reads = below(2000000),
                                     .writes = below(1000000),
                                     .held = held(from, from + below(300) / 1000.0),
                                     .key = i + 1};
    }
    return n;
}

static void assert_fits(const uint64_t *bytes, unsigned n, uint64_t share)
{
    for (unsigned t = 0; t < PLAN_TIMES; t++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < n; i++)
            sum += site[i].held >> t & 1 ? bytes[i] : 0;
        assert_true(sum <= share);
    }
}

static void test_never_more_than_the_share_at_a_time(void **unused)
{
    static uint64_t bytes[PLAN_MAX];
    uint32_t held[MOST];
    unsigned compared = 0;

    (void)unused;
    for (unsigned round = 0; round < rounds(400); round++) {
        unsigned n = random_sites();
        uint64_t share = HY_PAGE * (1 + below(2048));

        make(n, share, &plan);
        for (unsigned i = 0; i < n; i++) {
            bytes[i] = plan.place[i].dram_bytes;
            state[i] =
                (struct quota_site){.held = site[i].held, .live = below(2) ? site[i].bytes : 0};
            state[i].need = site_plan_blocks(&site[i], &state[i].block) * state[i].block;
        }
        assert_fits(bytes, n, share);
        site_quota_fill(&plan, state, share, quota);
        assert_fits(quota, n, share);
        for (unsigned i = 0; i < n; i++) {
            held[i] = site[i].held;
            site[i].held = 0;
        }
        make(n, share, &always);
        for (unsigned i = 0; i < n; i++)
            site[i].held = held[i];
        if (plan.read_ns != always.read_ns || plan.write_ns != always.write_ns)
            continue;
        assert_true(saved(&plan, n) >= saved(&always, n) * (1 - 1e-6));
        compared++;
    }
    assert_true(compared > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_the_run),
        cmocka_unit_test(test_cuts_are_where_sites_begin_and_end),
        cmocka_unit_test(test_those_that_do_not_meet_share),
        cmocka_unit_test(test_many_short_ones_beat_a_long_one),
        cmocka_unit_test(test_never_more_than_the_share_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
