/* SPDX-License-Identifier: BSD-2-Clause
 * What a user meets who sets options: names, messages, precedence, contradictions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "tools/ctl/rules/options_words.h"
#include "options_util.h"

static void test_defaults(void **state)
{
    char buf[HY_PATH_MAX + 16];

    (void)state;
    assert_int_equal(s.policy, HY_POLICY_AUTO);
    assert_int_equal(s.cls, HY_CLASS_UNKNOWN);
    assert_int_equal(s.pm.kind, HY_PM_AUTO);
    assert_true(s.dram.is_percent && s.dram.value == 100);
    assert_true(s.dram_shared.is_percent && s.dram_shared.value == 100);
    assert_int_equal(s.dram_allocator, HY_DRAM_MEMKIND);
    assert_string_equal(s.profile, "");
    assert_string_equal(s.registry, "auto");
    assert_string_equal(s.stats, "0");
    assert_int_equal(s.start, 6 * HY_MIB);
    assert_int_equal(s.mmap_min, HY_MIB);
    assert_int_equal(s.sites, HY_AUTO);
    assert_int_equal(s.site_min, 64 * HY_KIB);
    assert_int_equal(s.site_sample, 512 * HY_KIB);
    assert_int_equal(s.verbose, 0);
    assert_false(s.strict);
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        options_format(&s, i, buf, sizeof(buf));
        assert_string_equal(buf, options_info(i)->dflt);
        assert_int_equal(s.source[i], HY_FROM_DEFAULT);
    }
    assert_int_equal(options_check(&s, hear, &(struct heard){0}), 0);
}

/* Names in the table agree with each other, and with themselves as words. */
static void test_table(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPT_COUNT; i++) {
        const struct hy_opt_info *info = options_info(i);
        const char *help = options_words(i)->help;
        char env[64] = "HYBRID_";

        for (const char *k = info->key; *k; k++)
            env[strlen(env)] = (char)(*k >= 'a' && *k <= 'z' ? *k - 32 : *k);
        assert_string_equal(env, info->env);
        assert_int_equal(options_by_env(info->env, strlen(info->env)), i);
        assert_int_equal(options_by_key(info->key), i);
        assert_true(strlen(help) > 20 && help[strlen(help) - 1] == '.');
    }
    assert_null(options_info(OPT_COUNT));
    assert_null(options_words(OPT_COUNT));
    assert_int_equal(options_by_env("HYBRID_DRAM=8G", 11), OPT_DRAM); /* not NUL-terminated */
    assert_int_equal(options_by_env("HYBRID_DRAX", 11), OPT_COUNT);
    assert_int_equal(options_by_env("hybrid_dram", 11), OPT_COUNT);
    assert_int_equal(options_by_env("", 0), OPT_COUNT);
    assert_int_equal(options_by_key("dram-shared"), OPT_DRAM_SHARED);
    assert_int_equal(options_by_key("DRAM"), OPT_COUNT);
    assert_int_equal(options_by_key(""), OPT_COUNT);
}

static void test_messages(void **state)
{
    struct heard h;

    (void)state;
    set(OPT_POLICY, "fast", &h);
    assert_string_equal(h.last, "HYBRID_POLICY=\"fast\" is not known; allowed: auto, dram, pm, "
                                "first-fit or off; auto (the default) is used instead");
    set(OPT_DRAM, "4X", &h);
    assert_string_equal(
        h.last, "HYBRID_DRAM=\"4X\" is not a size; allowed: a size up to 1024T, such as "
                "512M or 8G, or a percentage up to 100%; 100% (the default) is used instead");
    set(OPT_POLICY,
        "\xff"
        "caf\xc3\xa9\x1b[2J\xe2\x80\xae\"",
        &h);
    assert_has(h.last, "\"\\xffcaf\xc3\xa9\\x1b[2J\\xe2\\x80\\xae\\x22\"");
    set(OPT_POLICY, "0123456789012345678901234567890123456789012345678901234567890123456789", &h);
    assert_has(h.last, "=\"012345678901234567890123456789012345678901234567...\" is");
    memset(&h, 0, sizeof(h));
    options_set(&s, OPT_START, "-3", HY_FROM_PROFILE, hear, &h);
    assert_has(h.last, "the profile's start=\"-3\" is not a size");
    set(OPT_POLICY, "pm", &h);
    set(OPT_POLICY, "fast", &h);
    assert_has(h.last, "pm (as set before) is used instead");
}

static void test_precedence(void **state)
{
    struct heard h = {0};

    (void)state;
    assert_int_equal(options_set(&s, OPT_DRAM, "1G", HY_FROM_ENV, hear, &h), 0);
    assert_int_equal(options_set(&s, OPT_DRAM, "2G", HY_FROM_PROFILE, hear, &h), 0);
    assert_int_equal(s.dram.value, HY_GIB);
    assert_int_equal(s.source[OPT_DRAM], HY_FROM_ENV);
    assert_int_equal(options_set(&s, OPT_START, "2M", HY_FROM_PROFILE, hear, &h), 0);
    assert_int_equal(s.source[OPT_START], HY_FROM_PROFILE);
    assert_int_equal(options_set(&s, OPT_START, "3M", HY_FROM_ENV, hear, &h), 0);
    assert_int_equal(s.start, 3 * HY_MIB);
    assert_int_equal(options_set(&s, OPT_START, "4M", HY_FROM_ENV, hear, &h), 0);
    assert_int_equal(s.start, 4 * HY_MIB); /* of equal sources the last call */
    assert_int_equal(h.n, 0);
    assert_int_equal(options_set(&s, OPT_DRAM, "x", HY_FROM_PROFILE, hear, &h), -EINVAL);
    assert_int_equal(h.n, 1); /* overridden, but wrong all the same */

    static const enum hy_opt_id ours[] = {OPT_PROFILE, OPT_PROFILE_PATH, OPT_REGISTRY,
                                          OPT_STATS,   OPT_VERBOSE,      OPT_STRICT};
    for (unsigned i = 0; i < HY_ARRAY_SIZE(ours); i++) {
        h.n = 0;
        assert_int_equal(options_set(&s, ours[i], "1", HY_FROM_PROFILE, hear, &h), -EINVAL);
        assert_int_equal(h.n, 1);
        assert_has(h.last, options_info(ours[i])->env);
        assert_int_equal(s.source[ours[i]], HY_FROM_DEFAULT);
    }
}

static void test_nearest(void **state)
{
    static const struct {
        const char *name;
        enum hy_opt_id id;
    } cases[] = {
        {"HYBRID_DRAMM", OPT_DRAM},
        {"HYBRID_POLCIY", OPT_POLICY},
        {"HYBRID_dram", OPT_DRAM},
        {"HYBRID_DRAM_SHARD", OPT_DRAM_SHARED},
        {"plicy", OPT_POLICY},
        {"HYBRID_DRAM-ALLOCATOR", OPT_DRAM_ALLOCATOR},
        {"HYBRID_PN", OPT_PM},
        {"HYBRID_STAT", OPT_STATS},
        {"HYBRID_SITESAMPLE", OPT_SITE_SAMPLE},
        {"HYBRID_HEARTBEAT", OPT_COUNT},
        {"HYBRID_XYZ", OPT_COUNT},
        {"HYBRID_", OPT_COUNT},
        {"", OPT_COUNT},
        {"HYBRID_X", OPT_COUNT},
        {"HYBRID_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", OPT_COUNT},
    };
    struct heard h = {0};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(cases); i++)
        if (options_nearest(cases[i].name, strlen(cases[i].name)) != cases[i].id)
            fail_msg("%s", cases[i].name);
    options_unknown_env("HYBRID_DRAMM", 12, hear, &h);
    assert_string_equal(h.last, "HYBRID_DRAMM is not an option of libhybrid and is ignored; did "
                                "you mean HYBRID_DRAM?");
    options_unknown_env("HYBRID_HEARTBEAT", 16, hear, &h);
    assert_string_equal(h.last, "HYBRID_HEARTBEAT is not an option of libhybrid and is ignored");
    options_unknown_env("HYBRID_\x80\n", 9, hear, &h);
    assert_has(h.last, "HYBRID_\\x80\\x0a is not");
}

static int check(struct heard *h, const char *const (*pairs)[2], unsigned n)
{
    options_defaults(&s);
    memset(h, 0, sizeof(*h));
    for (unsigned i = 0; i < n; i++) {
        enum hy_opt_id id = options_by_env(pairs[i][0], strlen(pairs[i][0]));

        assert_int_not_equal(id, OPT_COUNT);
        assert_int_equal(options_set(&s, id, pairs[i][1], HY_FROM_ENV, hear, h), 0);
    }
    return options_check(&s, hear, h);
}
#define CHECK(h, ...)                                                                              \
    check(h, (const char *const[][2]){__VA_ARGS__},                                                \
          sizeof((const char *const[][2]){__VA_ARGS__}) / sizeof(const char *[2]))

static void test_cross_checks(void **state)
{
    struct heard h;

    (void)state;
    assert_int_equal(CHECK(&h, {"HYBRID_POLICY", "pm"}, {"HYBRID_PM", "none"}), 1);
    assert_has(h.all, "HYBRID_POLICY=pm contradicts HYBRID_PM=none");
    assert_int_equal(CHECK(&h, {"HYBRID_POLICY", "dram"}, {"HYBRID_DRAM", "0%"}), 1);
    assert_has(h.all, "HYBRID_POLICY=dram contradicts HYBRID_DRAM=0");
    assert_int_equal(CHECK(&h, {"HYBRID_PM", "none"}, {"HYBRID_DRAM", "0"}), 1);
    assert_int_equal(CHECK(&h, {"HYBRID_DRAM", "2G"}, {"HYBRID_DRAM_SHARED", "1G"}), 1);
    assert_int_equal(CHECK(&h, {"HYBRID_DRAM", "2G"}, {"HYBRID_DRAM_SHARED", "10%"}), 0);
    assert_int_equal(CHECK(&h, {"HYBRID_POLICY", "off"}, {"HYBRID_CLASS", "cpu"}), 1);
    assert_has(h.all, "HYBRID_CLASS has no effect with HYBRID_POLICY=off");
    assert_int_equal(CHECK(&h, {"HYBRID_REGISTRY", "none"}, {"HYBRID_DRAM_SHARED", "1G"}), 1);
    assert_int_equal(CHECK(&h, {"HYBRID_SITES", "off"}, {"HYBRID_SITE_MIN", "32K"}), 1);
    /* hints are not counted: STRICT must not end a program for them */
    assert_int_equal(CHECK(&h, {"HYBRID_STRICT", "1"}, {"HYBRID_START", "1M"}), 0);
    assert_int_equal(h.n, 1);
    assert_int_equal(CHECK(&h, {"HYBRID_STRICT", "1"}), 0);
    assert_int_equal(h.n, 0);
    /* what a test matrix or a careful user sets together is no problem */
    assert_int_equal(CHECK(&h, {"HYBRID_POLICY", "dram"}, {"HYBRID_PM", "emulated"}), 0);
    assert_int_equal(CHECK(&h, {"HYBRID_POLICY", "off"}, {"HYBRID_PM", "file:/tmp"},
                           {"HYBRID_DRAM", "4M"}, {"HYBRID_STATS", "1"}),
                     0);
    assert_int_equal(h.n, 0);
    /* off in the environment silences a profile's class without a word */
    options_defaults(&s);
    options_set(&s, OPT_CLASS, "cpu", HY_FROM_PROFILE, NULL, NULL);
    options_set(&s, OPT_POLICY, "off", HY_FROM_ENV, NULL, NULL);
    assert_int_equal(options_check(&s, hear, &h), 0);
}

static void test_glob(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "/a/b", true},
        {"/opt/*/app", "/opt/x/y/app", true},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"[a-c]x", "bx", true},
        {"[!a-c]x", "bx", false},
        {"[^a-c]x", "dx", true},
        {"[]]x", "]x", true},
        {"[a", "[a", true},
        {"[a", "a", false},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"\\", "\\", true},
        {"*.py", "a.py.py", true},
        {"*a*b", "aXbXa", false},
        {"[a-]", "-", true},
        {"**x", "x", true},
        {"[", "[", true},
        {"[!", "[!", true},
        {"[\xc0-\xff]", "\xe9", true},
    };
    static char text[64 * 1024];

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(cases); i++)
        if (text_glob(cases[i].pattern, cases[i].text) != cases[i].match)
            fail_msg("%s on %s", cases[i].pattern, cases[i].text);
    memset(text, 'a', sizeof(text) - 1);
    /* exponential in a matcher that recurses at each star; here it must simply end */
    assert_false(text_glob("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static void test_lines(void **state)
{
    static const char text[] = " a\tb \r\n\n\v\f\nlast";
    static const char *const expected[] = {"a\tb", "", "", "last"};
    const char *at = text, *end = text + sizeof(text) - 1, *line;
    size_t len;

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(expected); i++) {
        assert_true(text_next_line(&at, end, &line, &len));
        assert_int_equal(len, strlen(expected[i]));
        assert_memory_equal(line, expected[i], len);
    }
    assert_false(text_next_line(&at, end, &line, &len));
    at = end = text + 1; /* nothing behind the end is looked at */
    assert_false(text_next_line(&at, end, &line, &len));
    at = text;
    assert_true(text_next_line(&at, text + 1, &line, &len));
    assert_int_equal(len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_defaults, reset),
        cmocka_unit_test_setup(test_table, reset),
        cmocka_unit_test_setup(test_messages, reset),
        cmocka_unit_test_setup(test_precedence, reset),
        cmocka_unit_test_setup(test_nearest, reset),
        cmocka_unit_test_setup(test_cross_checks, reset),
        cmocka_unit_test(test_glob),
        cmocka_unit_test(test_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
