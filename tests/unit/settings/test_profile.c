/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles: what good ones say. What bad ones cost: test_profile_hostile.c. */
#include "profile_util.h"
#include "tools/ctl/rules/profile_modules.h"

static void assert_full(void)
{
    static const uint8_t id[BUILD_ID_MAX] = {0x00, 0xab, 0x12};
    const struct profile_site *s = p.sites;

    assert_string_equal(p.exe, "redis-server");
    assert_string_equal(p.path, "/usr/*/redis-server");
    assert_int_equal(p.build_id_len, 3);
    assert_memory_equal(p.build_id, id, sizeof(id));
    assert_string_equal(p.args, "*--port 7777*");
    assert_int_equal(p.cls, HY_CLASS_BANDWIDTH);
    assert_true(p.slowdown == 1.875);
    assert_int_equal(p.write_intensive, 1);
    assert_int_equal(p.footprint, 512 * HY_MIB);
    assert_int_equal(p.threads[HY_DRAM], 8);
    assert_int_equal(p.threads[HY_PM], 3);
    assert_int_equal(p.threads_seen, 20);
    assert_true(p.exposure == 0.25 && p.foreseen == 0 && p.busy_threads == 7.5);
    assert_int_equal(p.n_phases, 2);
    assert_true(p.phases[0].start_ms == 0 && p.phases[0].cls == HY_CLASS_BANDWIDTH);
    assert_true(p.phases[0].slowdown == 5.97 && p.phases[1].start_ms == 1200);
    assert_true(p.phases[1].cls == HY_CLASS_UNKNOWN && p.phases[1].slowdown == 0);
    assert_int_equal(p.n_tasks, 2);
    assert_memory_equal(p.tasks[0].code.build_id, id, sizeof(id));
    assert_true(p.tasks[0].code.offset == 0x4f0 && p.tasks[0].count == 480);
    assert_true(p.tasks[0].needs == 2 && p.tasks[0].bytes[1] == 8192);
    assert_true(p.tasks[0].ns[HY_DRAM] == 310000 && p.tasks[0].ns[HY_PM] == 1200000);
    assert_true(p.tasks[1].ns[HY_DRAM] == 2000000 && p.tasks[1].ns[HY_PM] == 0);
    assert_string_equal(p.source.figures, "measured on a host");
    assert_true(p.source.pm_bytes == 1024 * HY_GIB && p.source.cpus == 40);
    assert_true(p.source.runs == 3 && p.source.confidence == 0.875 && p.source.known == 99.5);
    assert_true(p.source.reads == 123456789012u && p.source.writes == 0);
    assert_int_equal(p.n_options, 3);
    assert_int_equal(p.option[0].id, OPT_DRAM);
    assert_string_equal(p.option[0].value, "25%");
    assert_int_equal(p.option[1].id, OPT_MMAP_MIN);
    assert_string_equal(p.option[1].value, "2M");
    assert_int_equal(p.option[2].id, OPT_SITE_MIN);
    assert_int_equal(p.n_sites, 2);
    assert_string_equal(s[0].name, "dict");
    assert_int_equal(s[0].n_frames, 2);
    assert_memory_equal(s[0].frames[0].build_id, id, sizeof(id));
    assert_int_equal(s[0].frames[0].offset, 0x4f0);
    assert_int_equal(s[0].frames[1].build_id[19], 0x67);
    assert_true(s[0].frames[1].offset == UINT64_MAX);
    assert_true(s[0].has_tier && s[0].tier == HY_PM);
    assert_true(s[0].count == UINT64_MAX);
    assert_int_equal(s[0].bytes, HY_GIB);
    assert_int_equal(s[0].live_bytes, 100);
    assert_int_equal(s[0].min_size, 64);
    assert_int_equal(s[0].max_size, 65536);
    assert_int_equal(s[0].reads, 7);
    assert_true(s[0].from == 0.125 && s[0].until == 0.5 && s[1].until == 0);
    assert_string_equal(s[1].name, "b c");
    assert_int_equal(s[1].n_frames, 1);
    assert_false(s[1].has_tier);
}

static void test_full(void **state)
{
    (void)state;
    assert_int_equal(parse(full), 0);
    assert_string_equal(heard, "");
    assert_full();
}

/* The same file as editors of other systems write it. */
static void test_same_file_otherwise(void **state)
{
    static char text[2 * sizeof(full) + 16];
    size_t n = 3;

    (void)state;
    memcpy(text, "\xef\xbb\xbf", 3);
    for (const char *c = full; *c; c++) {
        if (c == full || c[-1] == '\n') /* indented, which inih alone would misread */
            text[n++] = '\t';
        if (*c == '\n')
            text[n++] = '\r';
        text[n++] = *c;
    }
    assert_int_equal(parse_bytes(text, n), 0);
    assert_string_equal(heard, "");
    assert_full();
    n -= 2; /* no newline at the end */
    assert_int_equal(parse_bytes(text, n), 0);
    assert_string_equal(heard, "");
    assert_full();
}

static void test_minimal(void **state)
{
    (void)state;
    memset(&p, 0xee, sizeof(p));
    assert_int_equal(parse("[app]"), 0);
    assert_int_equal(n_heard, 0);
    assert_string_equal(p.exe, "");
    assert_int_equal(p.cls, HY_CLASS_UNKNOWN);
    assert_int_equal(p.write_intensive, -1);
    assert_true(p.exposure < 0 && p.foreseen < 0);
    assert_int_equal(p.n_sites, 0);
    assert_int_equal(p.n_options, 0);
    assert_ptr_equal(p.sites, sites);
    p.sites = NULL; /* sites not wanted */
    assert_int_equal(profile_parse(full, strlen(full), "x", &p, hear, NULL), 0);
    assert_int_equal(p.n_sites, 0);
    assert_int_equal(p.n_options, 3);
}

static void test_modules(void **state)
{
    static const char text[] = "[app]\nab = /no\n[modules]\n# x\n00ab12 = /usr/bin/a b\n"
                               "  cd=/lib/c.so\r\nzz = /no\nef =\n[site a]\nab = /no\n";
    struct profile_module m[8];

    (void)state;
    assert_int_equal(profile_modules(text, strlen(text), m, 8), 2);
    assert_string_equal(m[0].path, "/usr/bin/a b");
    assert_int_equal(m[0].id[1], 0xab);
    assert_string_equal(m[1].path, "/lib/c.so");
    assert_int_equal(profile_modules(text, strlen(text), m, 1), 1);
    for (size_t n = 0; n < sizeof(text); n++) /* cut anywhere */
        assert_true(profile_modules(text, n, m, 8) <= 2);
}

static void test_duplicates(void **state)
{
    (void)state;
    assert_int_equal(parse("[app]\nexe = a\nexe = b\n[options]\ndram = 1G\ndram = 2G\n"
                           "[site s]\nframe0 = aa+0x1\nreads = 1\n"
                           "[site t]\nframe0 = bb+0x1\n"
                           "[site s]\nreads = 2\ntier = pm\n"),
                     0);
    assert_string_equal(p.exe, "b");
    assert_int_equal(p.n_options, 1);
    assert_string_equal(p.option[0].value, "2G");
    assert_int_equal(p.n_sites, 2);
    assert_int_equal(p.sites[0].n_frames, 1);
    assert_int_equal(p.sites[0].reads, 2);
    assert_int_equal(n_heard, 3);
    assert_heard("line 3: exe is given again; the last one counts");
    assert_heard("line 6: dram is given again");
    assert_heard("[site s] comes again");
}

static void test_options(void **state)
{
    static const char *const env_only[] = {"strict",       "verbose",  "profile",
                                           "profile_path", "registry", "stats"};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(env_only); i++) {
        char text[128];

        snprintf(text, sizeof(text), "[options]\n%s = 1\nstart = 0\n", env_only[i]);
        assert_int_equal(parse(text), 0);
        assert_int_equal(n_heard, 1);
        assert_heard(env_only[i]);
        assert_heard("cannot be set in a profile");
        assert_int_equal(p.n_options, 1);
        assert_int_equal(p.option[0].id, OPT_START);
    }
    assert_int_equal(parse("[options]\ndrams = 1\nhybrid = 3\nHYBRID_DRAM = 1G\ndram=\n"), 0);
    assert_heard("unknown option \"drams\" is ignored; did you mean \"dram\"?");
    assert_heard("unknown option \"hybrid\" is ignored\n");
    assert_heard("unknown option \"HYBRID_DRAM\" is ignored; did you mean \"dram\"?");
    assert_heard("dram has no value; expected: SIZE|N%");
    assert_int_equal(p.n_options, 0);
}

static void test_matches(void **state)
{
    static const uint8_t id[] = {1, 2}, other[] = {1, 3};
    struct profile_subject who = {"/usr/bin/app", "/usr/bin/app -x 1", id, 2};

    (void)state;
    assert_int_equal(parse("[app]\n"), 0);
    assert_int_equal(profile_matches(&p, &who), PROFILE_FITS);
    assert_int_equal(parse("[app]\nexe = app\npath = /usr/*\nargs = *-x*\nbuild-id = 0102\n"), 0);
    assert_int_equal(profile_matches(&p, &who), PROFILE_FITS);
    who.build_id = other;
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_BUILD);
    who.build_id_len = 0;
    who.build_id = NULL;
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_BUILD);
    who.args = "/usr/bin/app -y";
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_PROGRAM);
    who.args = NULL;
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_PROGRAM);
    who.args = "-x";
    who.exe_path = "/usr/bin/app2";
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_PROGRAM);
    who.exe_path = "/opt/app";
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_PROGRAM);
    who.exe_path = NULL;
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_PROGRAM);
    /* nothing but the build-id says which program is meant */
    assert_int_equal(parse("[app]\nbuild-id = 0102\n"), 0);
    who = (struct profile_subject){"/usr/bin/app", "", other, 2};
    assert_int_equal(profile_matches(&p, &who), PROFILE_OTHER_PROGRAM);
}

static void test_build_id(void **state)
{
    uint8_t id[BUILD_ID_MAX];
    char text[2 * BUILD_ID_MAX + 1];
    unsigned len = 77;

    (void)state;
    assert_int_equal(build_id_parse("00ffAb", id, &len), 0);
    assert_int_equal(len, 3);
    build_id_format(id, len, text, sizeof(text));
    assert_string_equal(text, "00ffab");
    build_id_format(id, len, text, 6); /* whole bytes only */
    assert_string_equal(text, "00ff");
    build_id_format(id, 0, text, sizeof(text));
    assert_string_equal(text, "");
    len = 77;
    memset(id, 9, sizeof(id));
    assert_int_equal(build_id_parse("0011x2", id, &len), -EINVAL);
    assert_int_equal(build_id_parse("", id, &len), -EINVAL);
    assert_int_equal(len, 77);
    assert_int_equal(id[0], 9);
}

/* The examples that are shipped and documented have nothing to be told about. */
static void test_examples(void **state)
{
    static char text[65536];
    const char *list = getenv("HY_TEST_PROFILES");

    (void)state;
    if (!list) {
        print_message("HY_TEST_PROFILES names no files: run through meson test\n");
        skip();
    }
    for (const char *at = list; *at;) {
        char path[4096];
        size_t n = strcspn(at, ":");
        FILE *f;

        snprintf(path, sizeof(path), "%.*s", (int)n, at);
        f = fopen(path, "r");
        if (!f)
            fail_msg("cannot open %s", path);
        size_t len = fread(text, 1, sizeof(text), f);
        fclose(f);
        assert_int_equal(parse_bytes(text, len), 0);
        assert_string_equal(heard, "");
        struct hy_settings s;
        options_defaults(&s);
        for (unsigned i = 0; i < p.n_options; i++)
            assert_int_equal(
                options_set(&s, p.option[i].id, p.option[i].value, HY_FROM_PROFILE, hear, NULL), 0);
        at += n + (at[n] == ':');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),       cmocka_unit_test(test_same_file_otherwise),
        cmocka_unit_test(test_minimal),    cmocka_unit_test(test_modules),
        cmocka_unit_test(test_duplicates), cmocka_unit_test(test_options),
        cmocka_unit_test(test_matches),    cmocka_unit_test(test_build_id),
        cmocka_unit_test(test_examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
