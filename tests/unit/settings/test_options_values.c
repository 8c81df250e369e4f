/* SPDX-License-Identifier: BSD-2-Clause
 * Values of options: what is taken, what is refused, and how they are shown. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "settings/rules/options.h"
#include "options_util.h"

static void accepts(enum hy_opt_id id, const char *value, const char *shown)
{
    char buf[HY_PATH_MAX + 16], again[HY_PATH_MAX + 16];
    struct heard h;

    options_defaults(&s);
    if (set(id, value, &h) != 0)
        fail_msg("%s=%s: %s", options_info(id)->env, value, h.last);
    assert_int_equal(h.n, 0);
    assert_int_equal(s.source[id], HY_FROM_ENV);
    options_format(&s, id, buf, sizeof(buf));
    assert_string_equal(buf, shown);
    assert_int_equal(set(id, buf, &h), 0); /* what is shown can be written */
    options_format(&s, id, again, sizeof(again));
    assert_string_equal(buf, again);
}

static void refuses(enum hy_opt_id id, const char *value)
{
    struct hy_settings before;
    struct heard h;

    options_defaults(&s);
    before = s;
    if (set(id, value, &h) != -EINVAL)
        fail_msg("%s=%s was taken", options_info(id)->env, value);
    assert_int_equal(h.n, 1);
    assert_has(h.last, options_info(id)->env);
    assert_has(h.last, "allowed: ");
    assert_has(h.last, options_info(id)->dflt[0] == '/' ? "/etc/" : options_info(id)->dflt);
    assert_has(h.last, "(the default) is used instead");
    assert_memory_equal(&s, &before, sizeof(s));
}

static void test_good_values(void **state)
{
    static const char *const words[] = {"auto", "dram", "pm", "first-fit", "off"};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(words); i++) {
        accepts(OPT_POLICY, words[i], words[i]);
        assert_int_equal(s.policy, i);
    }
    accepts(OPT_CLASS, "latency", "latency");
    assert_int_equal(s.cls, HY_CLASS_LATENCY);
    accepts(OPT_CLASS, "none", "none");
    accepts(OPT_DRAM, "4M", "4M");
    assert_true(!s.dram.is_percent && s.dram.value == 4 * HY_MIB);
    accepts(OPT_DRAM, "25%", "25%");
    assert_true(s.dram.is_percent && s.dram.value == 25);
    accepts(OPT_DRAM, "0", "0");
    accepts(OPT_DRAM, "0%", "0%");
    accepts(OPT_DRAM, "1024T", "1024T");
    accepts(OPT_DRAM, "8gib", "8G");
    accepts(OPT_DRAM, "8GB", "8G");
    accepts(OPT_DRAM, "08k", "8K");
    accepts(OPT_DRAM, "1536K", "1536K");
    accepts(OPT_DRAM, "1000", "1000");
    accepts(OPT_START, "0", "0");
    accepts(OPT_DRAM_ALLOCATOR, "next", "next");
    accepts(OPT_SITES, "on", "on");
    assert_int_equal(s.sites, HY_ON);
    accepts(OPT_SITES, "off", "off");
    assert_int_equal(s.sites, HY_OFF);
    accepts(OPT_VERBOSE, "1", "1");
    assert_int_equal(s.verbose, 1);
    accepts(OPT_STRICT, "1", "1");
    assert_true(s.strict);
    accepts(OPT_PROFILE, "ocean", "ocean");
    accepts(OPT_PROFILE, "./a b/\xff.ini", "./a b/\xff.ini"); /* paths are bytes */
    accepts(OPT_PROFILE, "none", "none");
    assert_string_equal(s.profile, "");
    accepts(OPT_PROFILE_PATH, "/a:/b/c", "/a:/b/c");
    accepts(OPT_REGISTRY, "none", "none");
    accepts(OPT_REGISTRY, "/dev/shm/x", "/dev/shm/x");
    accepts(OPT_STATS, "1", "1");
    accepts(OPT_STATS, "/tmp/s-%p.json", "/tmp/s-%p.json");
    accepts(OPT_STATS, "./2", "./2");
}

static void test_pm(void **state)
{
    (void)state;
    accepts(OPT_PM, "none", "none");
    accepts(OPT_PM, "node:3,1,3", "node:1,3");
    assert_int_equal(s.pm.kind, HY_PM_NODE);
    assert_int_equal(s.pm.nodes, 1u << 1 | 1u << 3);
    accepts(OPT_PM, "node:63", "node:63");
    assert_true(s.pm.nodes == (uint64_t)1 << 63);
    accepts(OPT_PM, "file:/mnt/pm 0:x", "file:/mnt/pm 0:x");
    assert_string_equal(s.pm.dir, "/mnt/pm 0:x");
    accepts(OPT_PM, "emulated", "emulated");
    assert_int_equal(s.pm.bytes, 0);
    accepts(OPT_PM, "emulated:2G", "emulated:2G");
    assert_int_equal(s.pm.bytes, 2 * HY_GIB);
    assert_string_equal(s.pm.dir, "");
    static const char *const bad[] = {
        "node",       "node:",       "node:64",     "node:1,",
        "node:,1",    "node:-1",     "node:1-3",    "node:99999999999999999999",
        "node: 1",    "file",        "file:",       "file:relative",
        "emulated:",  "emulated:1K", "emulated:-1", "emulated:x",
        "auto:",      "none:1",      "Node:1",      "nodes:1",
        "file:/a\nb", ":",           "emulatedd",   "\xff\xfe"};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(bad); i++)
        refuses(OPT_PM, bad[i]);
}

static void test_bad_values(void **state)
{
    static const char *const numbers[] = {"-1",
                                          "+1",
                                          " 1",
                                          "1 ",
                                          "1.5G",
                                          "1,5G",
                                          "1e9",
                                          "0x10",
                                          "G",
                                          "1GG",
                                          "1Gi",
                                          "1iB",
                                          "1B",
                                          "1KiBs",
                                          "1P",
                                          "1025T",
                                          "1048577G",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "99999999999999999999999999999999999999999",
                                          "99999999999999999999999T",
                                          "\xd9\xa1",
                                          "12\t",
                                          "a"};
    static const enum hy_opt_id sized[] = {OPT_DRAM,     OPT_DRAM_SHARED, OPT_START,
                                           OPT_MMAP_MIN, OPT_SITE_MIN,    OPT_SITE_SAMPLE};
    static const char *const percent[] = {"101%", "%",    "-1%",  "1.5%",
                                          "10%%", "10 %", "10K%", "99999999999999999999999%"};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(sized); i++)
        for (unsigned k = 0; k < HY_ARRAY_SIZE(numbers); k++)
            refuses(sized[i], numbers[k]);
    for (unsigned k = 0; k < HY_ARRAY_SIZE(percent); k++)
        refuses(OPT_DRAM, percent[k]);
    refuses(OPT_START, "10%"); /* no percentage here */
    refuses(OPT_MMAP_MIN, "4095");
    refuses(OPT_SITE_SAMPLE, "0"); /* would be a division by nothing */
    refuses(OPT_POLICY, "DRAM");
    refuses(OPT_POLICY, "auto|dram");
    refuses(OPT_POLICY, "au");
    refuses(OPT_CLASS, "unknown");
    refuses(OPT_STRICT, "2");
    refuses(OPT_STRICT, "yes");
    refuses(OPT_VERBOSE, "2");
    refuses(OPT_VERBOSE, "-1");
    refuses(OPT_VERBOSE, "01");
    refuses(OPT_STATS, "2");
    refuses(OPT_STATS, "-1");
    refuses(OPT_STATS, "/tmp/");
    refuses(OPT_PROFILE, "dir/");
    refuses(OPT_PROFILE_PATH, "a:/b");
    refuses(OPT_PROFILE_PATH, "/a::/b");
    refuses(OPT_PROFILE_PATH, "/a:");
    refuses(OPT_PROFILE_PATH, ":");
    refuses(OPT_REGISTRY, "off");
    refuses(OPT_REGISTRY, "/a\x01");
}

/* Whatever the option: nothing, control characters, noise, a megabyte. */
static void test_hostile_values(void **state)
{
    static char huge[1 << 20];
    struct heard h;

    (void)state;
    memset(huge, '/', sizeof(huge) - 1);
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        refuses(i, "");
        assert_int_equal(set(i, "", &h), -EINVAL);
        assert_has(h.last, " is empty; allowed: ");
        refuses(i, "\n");
        refuses(i, "/a\x7f");
        refuses(i, huge);
        if (i == OPT_PROFILE || i == OPT_STATS) /* any other name could be a file */
            accepts(i, "\xc3\xa9", "\xc3\xa9");
        else
            refuses(i, "\xff\xc0\x80\x1b[31m\"x\\");
        assert_int_equal(options_set(&s, i, NULL, HY_FROM_ENV, NULL, NULL), -EINVAL);
    }
    huge[HY_PATH_MAX] = '\0';
    refuses(OPT_REGISTRY, huge);
    huge[HY_PATH_MAX - 1] = '\0';
    accepts(OPT_REGISTRY, huge, huge);
}

static void test_amount(void **state)
{
    (void)state;
    assert_int_equal(hy_amount_bytes((struct hy_amount){false, 5}, 3), 5);
    assert_int_equal(hy_amount_bytes((struct hy_amount){true, 25}, 400), 100);
    assert_int_equal(hy_amount_bytes((struct hy_amount){true, 100}, 199), 199);
    assert_int_equal(hy_amount_bytes((struct hy_amount){true, 0}, 199), 0);
    assert_true(hy_amount_bytes((struct hy_amount){true, 100}, UINT64_MAX) == UINT64_MAX);
    assert_true(hy_amount_bytes((struct hy_amount){true, 50}, UINT64_MAX) == UINT64_MAX / 2);
}

static void test_small_buffers(void **state)
{
    struct heard h;

    (void)state;
    set(OPT_PM, "node:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25", &h);
    for (unsigned i = 0; i < OPT_COUNT; i++)
        for (size_t cap = 1; cap < 40; cap++) {
            char *buf = malloc(cap); /* so that sanitizers see one byte too many */

            options_format(&s, i, buf, cap);
            assert_true(strlen(buf) < cap);
            free(buf);
        }
    for (size_t cap = 1; cap < 40; cap++) {
        char *buf = malloc(cap);

        text_quote("ab\xff\xc3\xa9\n\"xyz0123456789", 20, buf, cap);
        assert_true(strlen(buf) < cap);
        text_choices_prose("one|two|three", buf, cap);
        assert_true(strlen(buf) < cap);
        free(buf);
    }
}

static void test_admission(void **state)
{
    struct heard h;
    char text[64];

    (void)state;
    assert_int_equal(set(OPT_ADMISSION, "wait:90", &h), 0);
    assert_int_equal(s.admission, 90000000000ull);
    options_format(&s, OPT_ADMISSION, text, sizeof(text));
    assert_string_equal(text, "wait:90");
    static const char *const bad[] = {
        "wait",    "wait:", "wait:0", "wait:86401", "wait:-1", "on", "wait:99999999999999999999",
        "wait:1s", "off "};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(bad); i++) {
        assert_int_equal(set(OPT_ADMISSION, bad[i], &h), -EINVAL);
        assert_has(h.last, "off, or wait:SECONDS with 1 to 86400");
        assert_int_equal(s.admission, 90000000000ull);
    }
    assert_int_equal(set(OPT_ADMISSION, "off", &h), 0);
    assert_int_equal(s.admission, 0);
    options_format(&s, OPT_ADMISSION, text, sizeof(text));
    assert_string_equal(text, "off");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_good_values, reset),
        cmocka_unit_test_setup(test_pm, reset),
        cmocka_unit_test_setup(test_bad_values, reset),
        cmocka_unit_test_setup(test_hostile_values, reset),
        cmocka_unit_test_setup(test_amount, reset),
        cmocka_unit_test_setup(test_small_buffers, reset),
        cmocka_unit_test_setup(test_admission, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
