/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles of several runs become one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "profile_util.h"
#include "tools/ctl/rules/profile_merge.h"

static struct profile_site sites_a[PROFILE_MAX_SITES];

static struct profile run_of(struct profile_site *sites, enum hy_class cls, double confidence,
                             uint64_t ms)
{
    struct profile p;

    empty(&p, sites);
    strcpy(p.exe, "app");
    p.cls = cls;
    p.slowdown = cls == HY_CLASS_CPU ? 1 : 4;
    p.source.confidence = confidence;
    p.source.ms = ms;
    p.source.runs = 1;
    return p;
}

static void test_merge(void **state)
{
    static struct profile_site one[2], two[2], all[4];
    static struct profile into;
    struct profile a = run_of(one, HY_CLASS_BANDWIDTH, 0.5, 1000);
    struct profile b = run_of(two, HY_CLASS_CPU, 0.9, 100), other = a;
    struct profile_merge m;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        random_site(&one[i], i);
        two[i] = one[i];
        one[i].has_tier = two[i].has_tier = false;
    }
    two[1].frames[0].offset ^= 1; /* the first is the same, the second another */
    one[0].reads = 100;
    two[0].reads = 301;
    one[0].live_bytes = 5;
    two[0].live_bytes = 7;
    one[0].from = 0.5;
    two[0].from = 0.25;
    one[0].until = 0.75;
    two[0].until = 0.9;
    one[0].min_size = 16;
    two[0].min_size = 8;
    one[1].reads = 50;
    a.n_sites = b.n_sites = 2;
    a.footprint = 10;
    b.footprint = 30;
    b.threads[HY_PM] = 4;
    into.sites = all;
    heard[0] = '\0';
    profile_merge_begin(&m, &into, HY_ARRAY_SIZE(all));
    assert_int_equal(profile_merge_add(&m, &a, "a.ini", hear, NULL), 0);
    assert_int_equal(profile_merge_add(&m, &b, "b.ini", hear, NULL), 0);
    assert_non_null(strstr(heard, "b.ini: class is cpu here and bandwidth before"));
    strcpy(other.exe, "other");
    assert_int_equal(profile_merge_add(&m, &other, "c.ini", hear, NULL), -EXDEV);
    assert_non_null(strstr(heard, "c.ini: it is of other, the others are of app"));
    profile_merge_end(&m);
    assert_int_equal(into.source.runs, 2);
    assert_int_equal(into.cls, HY_CLASS_BANDWIDTH); /* 500 against 90 */
    assert_true(into.slowdown > 3.4 && into.slowdown < 4);
    assert_true(into.footprint == 30 && into.threads[HY_PM] == 4);
    assert_int_equal(into.n_sites, 3);
    assert_int_equal(all[0].reads, 201); /* mean, rounded up */
    assert_int_equal(all[0].live_bytes, 7);
    assert_int_equal(all[0].min_size, 8);
    assert_true(all[0].from == 0.25 && all[0].until == 0.9); /* the longer time */
    assert_int_equal(all[1].reads, 25);                      /* none in the other run */
    assert_string_equal(all[1].name, one[1].name);
    assert_string_equal(all[2].name, ""); /* the name is taken */
}

/* Behaviours are those of the run that weighs most, with what its sites say of them. */
static void test_merge_behaviours(void **state)
{
    static struct profile_site one[2], two[2], all[4];
    static struct profile into;
    struct profile a = run_of(one, HY_CLASS_BANDWIDTH, 0.5, 1000);
    struct profile b = run_of(two, HY_CLASS_BANDWIDTH, 0.5, 100);
    struct profile_merge m;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        random_site(&one[i], i);
        two[i] = one[i];
    }
    two[1].frames[0].offset ^= 1; /* another one */
    a.n_sites = b.n_sites = a.n_behaviours = b.n_behaviours = 2;
    a.behaviours[1].reads = 77;
    for (unsigned i = 0; i < 2; i++) {
        one[i].n_reads_in = two[i].n_reads_in = 2;
        one[i].reads_in[1] = 5 + i;
        two[i].reads_in[1] = 50 + i;
    }
    for (int last = 0; last < 2; last++) {
        const struct profile *in_turn[] = {&a, &b};
        into.sites = all;
        profile_merge_begin(&m, &into, HY_ARRAY_SIZE(all));
        for (int i = 0; i < 2; i++)
            assert_int_equal(profile_merge_add(&m, in_turn[i ^ last], "", hear, NULL), 0);
        profile_merge_end(&m);
        assert_true(into.n_sites == 3 && into.n_behaviours == 2);
        assert_true(into.behaviours[1].reads == 77);
        for (unsigned i = 0; i < 3; i++) {
            unsigned of_a = 0;
            while (of_a < 2 && memcmp(all[i].frames, one[of_a].frames, sizeof(one[0].frames)) != 0)
                of_a++;
            assert_int_equal(all[i].n_reads_in, of_a < 2 ? 2 : 0);
            assert_true(of_a == 2 || all[i].reads_in[1] == 5 + of_a);
        }
    }
}

/* Parts of blocks are weighed by the lines of each; where a run tells of none, all were alike. */
static void test_merge_heat(void **state)
{
    static struct profile_site one[1], two[1], all[4];
    static struct profile into;
    struct profile a = run_of(one, HY_CLASS_BANDWIDTH, 0.5, 1000);
    struct profile b = run_of(two, HY_CLASS_BANDWIDTH, 0.5, 1000);
    struct profile_merge m;

    (void)state;
    random_site(&one[0], 0);
    one[0].reads = 3000;
    one[0].writes = 0;
    two[0] = one[0];
    two[0].reads = 1000;
    one[0].has_heat = true;
    for (unsigned i = 0; i < PROFILE_BINS; i++)
        one[0].heat[i] = i < 8 ? 2 : 0;
    a.n_sites = b.n_sites = 1;
    for (int last = 0; last < 2; last++) {
        const struct profile *in_turn[] = {&a, &b};
        into.sites = all;
        profile_merge_begin(&m, &into, HY_ARRAY_SIZE(all));
        for (int i = 0; i < 2; i++)
            assert_int_equal(profile_merge_add(&m, in_turn[i ^ last], "", hear, NULL), 0);
        profile_merge_end(&m);
        assert_true(into.n_sites == 1 && all[0].has_heat);
        for (unsigned i = 0; i < PROFILE_BINS; i++)
            assert_in_range(all[0].heat[i], i < 8 ? 1014 : 78, i < 8 ? 1017 : 79);
    }
}

/* A merged profile weighs as many runs as it was made of; one without sites adds facts. */
static void test_merge_again(void **state)
{
    static struct profile_site one[1], all[4], three[4];
    static struct profile into, last;
    struct profile a = run_of(one, HY_CLASS_UNKNOWN, 0, 10);
    struct profile facts = run_of(NULL, HY_CLASS_LATENCY, 0.4, 10);
    struct profile_merge m;

    (void)state;
    random_site(&one[0], 0);
    one[0].bytes = 300;
    a.n_sites = 1;
    into.sites = all;
    profile_merge_begin(&m, &into, 4);
    assert_int_equal(profile_merge_add(&m, &a, "a", hear, NULL), 0);
    assert_int_equal(profile_merge_add(&m, &a, "a", hear, NULL), 0);
    assert_int_equal(profile_merge_add(&m, &facts, "f", hear, NULL), 0);
    profile_merge_end(&m);
    assert_int_equal(into.cls, HY_CLASS_LATENCY);
    assert_int_equal(all[0].bytes, 300);
    into.source.runs = 2;
    one[0].bytes = 0;
    last.sites = three;
    profile_merge_begin(&m, &last, 4);
    assert_int_equal(profile_merge_add(&m, &into, "2 runs", hear, NULL), 0);
    assert_int_equal(profile_merge_add(&m, &a, "a", hear, NULL), 0);
    profile_merge_end(&m);
    assert_int_equal(three[0].bytes, 200);
    assert_int_equal(last.source.runs, 3);
}

/* Counts are means; times are those of the run that knows them best. */
static void test_merge_tasks(void **state)
{
    static struct profile into;
    static struct profile_site all[1];
    struct profile a = run_of(NULL, HY_CLASS_CPU, 0.4, 10), b = a;
    struct profile_merge m;

    (void)state;
    random_task(&a.tasks[0]);
    a.n_tasks = 1;
    a.tasks[0].count = 100;
    a.tasks[0].ns[HY_DRAM] = 1000;
    a.tasks[0].ns[HY_PM] = 0;
    b.tasks[0] = b.tasks[1] = a.tasks[0];
    b.n_tasks = 2;
    b.tasks[0].count = 20;
    b.tasks[0].ns[HY_DRAM] = 7000;
    b.tasks[0].ns[HY_PM] = 9000;
    b.tasks[1].bytes[0] += HY_PAGE;
    into.sites = all;
    profile_merge_begin(&m, &into, 1);
    assert_int_equal(profile_merge_add(&m, &a, "a", hear, NULL), 0);
    assert_int_equal(profile_merge_add(&m, &b, "b", hear, NULL), 0);
    profile_merge_end(&m);
    assert_int_equal(into.n_tasks, 2);
    assert_int_equal(into.tasks[0].count, 60);
    assert_int_equal(into.tasks[0].ns[HY_DRAM], 1000);
    assert_int_equal(into.tasks[0].ns[HY_PM], 9000);
    assert_int_equal(into.tasks[1].count, 50);
}

static void test_fold(void **state)
{
    static struct profile p;

    (void)state;
    empty(&p, sites_a);
    for (unsigned i = 0; i < 4; i++) {
        random_site(&p.sites[i], 0);
        p.sites[i] = p.sites[0];
        p.sites[i].has_tier = false;
        p.sites[i].reads = p.sites[i].writes = 0;
        p.sites[i].count = p.sites[i].bytes = 10;
        p.sites[i].live_bytes = 6;
        p.sites[i].nth = (uint8_t)i;
    }
    p.sites[3].frames[0].offset ^= 4;
    p.n_sites = 4;
    p.footprint = 17;
    p.sites[1].writes = 1;
    profile_fold_alike(&p);
    assert_int_equal(p.n_sites, 4); /* they differ */
    p.sites[1].writes = 0;
    profile_fold_alike(&p);
    assert_int_equal(p.n_sites, 2);
    assert_int_equal(p.sites[0].bytes, 30);
    assert_int_equal(p.sites[0].live_bytes, 17);
    assert_int_equal(p.sites[0].nth, 0);
    assert_int_equal(p.sites[1].bytes, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),       cmocka_unit_test(test_merge_behaviours),
        cmocka_unit_test(test_merge_heat),  cmocka_unit_test(test_merge_again),
        cmocka_unit_test(test_merge_tasks), cmocka_unit_test(test_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
