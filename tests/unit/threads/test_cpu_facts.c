/* SPDX-License-Identifier: BSD-2-Clause
 * CPUs from a made-up sysfs: two sockets with hyperthreads, PM beside the second. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "threads/cpu_facts.h"

static char root[] = "/tmp/hybrid-cpus-XXXXXX";
static struct cpu_facts facts[HY_CPUS];

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        if (mkdir(path, 0700) != 0)
            assert_int_equal(errno, EEXIST);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_tree(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    put("devices/system/cpu/online", "0-7\n");
    for (int i = 0; i < 8; i++) {
        char name[128], text[32];
        snprintf(name, sizeof(name), "devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        snprintf(text, sizeof(text), "%d,%d\n", i % 4, i % 4 + 4);
        put(name, text);
    }
    put("devices/system/node/online", "0-1,3\n");
    put("devices/system/node/node0/cpulist", "0-1,4-5\n");
    put("devices/system/node/node1/cpulist", "2-3,6-7\n");
    put("devices/system/node/node3/cpulist", "\n");
    put("devices/system/node/node0/distance", "10 21 28\n");
    put("devices/system/node/node1/distance", "21 10 17\n");
    put("devices/system/node/node3/distance", "28 17 10\n");
    return 0;
}

static int remove_tree(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command);
}

static void siblings_and_distances(void **state)
{
    (void)state;
    assert_int_equal(cpu_facts_read(root, 1u << 3, facts), 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(facts[i].sibling, i >= 4);
        assert_int_equal(facts[i].distance, i % 4 < 2 ? 28 : 17);
    }
    assert_int_equal(cpu_facts_read(root, 1u << 1 | 1u << 3, facts), 8);
    assert_int_equal(facts[2].distance, 10);
    assert_int_equal(facts[0].distance, 21);
}

static void without_pm_or_sysfs(void **state)
{
    (void)state;
    assert_int_equal(cpu_facts_read(root, 0, facts), 8);
    assert_int_equal(facts[7].distance, 0);
    assert_int_equal(facts[7].sibling, 1);
    assert_int_equal(cpu_facts_read("/nonexistent", 1, facts), 0);
    assert_int_equal(facts[7].sibling, 0);
}

static void nonsense_is_survived(void **state)
{
    (void)state;
    put("devices/system/cpu/online", "5-2,9999999999,x\n");
    put("devices/system/node/node0/distance", "-1 99999999999999\n");
    put("devices/system/node/node1/cpulist", "1000-99999\n");
    assert_true(cpu_facts_read(root, 1u << 3, facts) <= HY_CPUS);
}

static void lists(void **state)
{
    const char *at = "0-3,8,10-10\n";
    uint64_t lo, hi;
    (void)state;
    assert_true(text_next_range(&at, &lo, &hi) && lo == 0 && hi == 3);
    assert_true(text_next_range(&at, &lo, &hi) && lo == 8 && hi == 8);
    assert_true(text_next_range(&at, &lo, &hi) && lo == 10 && hi == 10);
    assert_false(text_next_range(&at, &lo, &hi));
    at = "3-";
    assert_false(text_next_range(&at, &lo, &hi));
    at = "7-5";
    assert_true(text_next_range(&at, &lo, &hi) && lo == 7 && hi == 7);
}

static void times(void **state)
{
    uint64_t ns = 0;
    char text[24];
    (void)state;
    assert_int_equal(text_parse_time("10ms", 4, &ns), 0);
    assert_int_equal(ns, 10000000);
    assert_int_equal(text_parse_time("2m", 2, &ns), 0);
    text_format_time(ns, text, sizeof(text));
    assert_string_equal(text, "2m");
    text_format_time(1500000, text, sizeof(text));
    assert_string_equal(text, "1500us");
    assert_int_equal(text_parse_time("5", 1, &ns), -EINVAL);
    assert_int_equal(text_parse_time("s", 1, &ns), -EINVAL);
    assert_int_equal(text_parse_time("-1s", 3, &ns), -EINVAL);
    assert_int_equal(text_parse_time("1h", 2, &ns), -EINVAL);
    assert_int_equal(text_parse_time("99999999999999999999s", 21, &ns), -ERANGE);
    assert_int_equal(text_parse_time("9999999999999s", 14, &ns), -ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siblings_and_distances),
        cmocka_unit_test(without_pm_or_sysfs),
        cmocka_unit_test(nonsense_is_survived),
        cmocka_unit_test(lists),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
