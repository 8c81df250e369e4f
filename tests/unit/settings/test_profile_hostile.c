/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles that are wrong cost a few lines of messages and no more. */
#include <time.h>

#include "profile_util.h"

/* Cut anywhere: never a crash, never a value that the full file does not have. */
static void test_truncated(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(full) - 1; len++) {
        int r = parse_bytes(full, len);

        assert_true(r == 0 || r == -EINVAL);
        assert_true(n_heard <= 3);
        assert_int_equal(r == 0, len >= 19 + 1); /* from "[app]" on */
    }
}

static void test_not_a_profile(void **state)
{
    struct profile before;
    static char big[PROFILE_MAX_BYTES + 1];

    (void)state;
    memset(&p, 0x55, sizeof(p));
    p.sites = sites;
    before = p;
    assert_int_equal(parse(""), -EINVAL);
    assert_heard("profile x.ini: no section of a profile is in the file");
    assert_int_equal(parse("just text\n"), -EINVAL);
    assert_int_equal(parse("[core]\neditor = vi\n"), -EINVAL);
    assert_int_equal(parse_bytes("[app]\nexe = a\0b\n", 16), -EINVAL);
    assert_heard("NUL");
    assert_int_equal(n_heard, 1);
    assert_int_equal(parse_bytes("\xff\xfe[\0a\0p\0p\0]\0", 12), -EINVAL); /* UTF-16 */
    assert_int_equal(parse_bytes("\x7f"
                                 "ELF\x02\x01\x01\0\0\0\0",
                                 11),
                     -EINVAL);
    memset(big, '\n', sizeof(big));
    assert_int_equal(parse_bytes(big, sizeof(big)), -E2BIG);
    assert_int_equal(n_heard, 1);
    assert_memory_equal(&p, &before, sizeof(p));
}

/* Each line is told with its number and its reason, and costs nothing else. */
static void test_bad_lines(void **state)
{
    static const struct {
        const char *line, *told;
    } app[] = {
        {"class = fast", "class = fast is ignored; expected: none, cpu, bandwidth or latency"},
        {"class =", "class has no value; expected: none"},
        {"slowdown = 1,5", "decimal number"},
        {"slowdown = 1e3", "decimal number"},
        {"slowdown = nan", "decimal number"},
        {"slowdown = 0", "decimal number"},
        {"slowdown = -1", "decimal number"},
        {"slowdown = 1001", "decimal number"},
        {"slowdown = 1.", "decimal number"},
        {"slowdown = 0x1p3", "decimal number"},
        {"slowdown = 99999999999999999999999", "decimal number"},
        {"write-intensive = yes", "0 or 1"},
        {"footprint = -1", "a size"},
        {"footprint = 99999999999999999999", "a size"},
        {"footprint = 1025T", "a size"},
        {"build-id = abc", "hex digits"},
        {"build-id = zz", "hex digits"},
        {"build-id = 0123456789abcdef0123456789abcdef0123456789", "hex digits"},
        {"exe = /bin/sh", "without directories"},
        {"exe = a\x01", "\\x01 is ignored"},
        {"exe =", "without directories"},
        {"slow-down = 2", "unknown key \"slow-down\" is ignored; did you mean \"slowdown\"?"},
        {"colour = red", "unknown key \"colour\" is ignored\n"},
        {"= 3", "unknown key \"\" is ignored"},
        {"no equals sign", "neither a section nor key = value"},
        {"\xff\xfe\x80 = \xc0", "unknown key \"\\xff\\xfe\\x80\" is ignored"},
        {"[sit a]", "unknown section \"sit a\" is ignored"},
        {"[option]", "did you mean \"options\"?"},
        {"[app x]", "unknown section \"app x\" is ignored"},
        {"[]", "unknown section \"\" is ignored"},
        {"[app", "lacks its ']'"},
        {"[site]", "a site needs a name"},
        {"[site 01234567890123456789012345678901]", "a site needs a name"},
        {"[site \xc3\xa9]", "a site needs a name"},
        {"[app] exe = b", "text behind ']'"},
    };

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(app); i++) {
        char text[512];

        snprintf(text, sizeof(text), "[app]\n%s\n[app]\nfootprint = 3K\n", app[i].line);
        assert_int_equal(parse(text), 0);
        assert_heard(app[i].told);
        assert_heard("profile x.ini, line 2: ");
        assert_int_equal(n_heard, 1);
        assert_int_equal(p.footprint, 3 * HY_KIB);
        assert_int_equal(p.cls, HY_CLASS_UNKNOWN);
        assert_true(p.slowdown == 0);
        assert_int_equal(p.write_intensive, -1);
        assert_int_equal(p.build_id_len, 0);
        assert_string_equal(p.exe, "");
    }
}

/* A bad value of a later line leaves the good one of an earlier line. */
static void test_bad_after_good(void **state)
{
    (void)state;
    assert_int_equal(parse("[app]\nbuild-id = 0102\nclass = cpu\nwrite-intensive = 0\n"
                           "build-id = x\nclass = y\nwrite-intensive = 2\n"),
                     0);
    assert_int_equal(p.build_id_len, 2);
    assert_int_equal(p.cls, HY_CLASS_CPU);
    assert_int_equal(p.write_intensive, 0);
    assert_int_equal(n_heard, 6); /* three duplicates, three values */
}

static void test_bad_sites(void **state)
{
    static const char *const frames[] = {
        "frame0 = 4f0",     "frame0 = ab+4f0",  "frame0 = ab+0x",
        "frame0 = +0x1",    "frame0 = ab+0x1g", "frame0 = ab+0x11111111111111111",
        "frame0 = abc+0x1", "frame0 = ab +0x1", "frame0 = ab+0x1+0x2",
        "frame0 =",         "frame0 = ab-0x1"};
    char text[256];

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(frames); i++) {
        snprintf(text, sizeof(text), "[site a]\n%s\n[site b]\nframe0 = ab+0x1\n", frames[i]);
        assert_int_equal(parse(text), 0);
        assert_heard("a build-id and an offset");
        assert_heard("[site a] has no frame0 and is ignored");
        assert_int_equal(n_heard, 2);
        assert_int_equal(p.n_sites, 1);
        assert_string_equal(p.sites[0].name, "b");
    }
    assert_int_equal(parse("[site a]\nframe0 = ab+0x1\nframe2 = ab+0x2\n"), 0);
    assert_heard("[site a] has a gap in its frames");
    assert_int_equal(p.n_sites, 0);
    assert_int_equal(parse("[site a]\nframe1 = ab+0x1\n"), 0);
    assert_int_equal(p.n_sites, 0);
    assert_int_equal(parse("[site a]\nframe0 = ab+0x1\nframe8 = ab+0x1\ntier = hbm\ncount = 1K\n"
                           "reads = -1\nbytes = 1.5\nmin-size = 3\nmax-size = 2\n"),
                     0);
    assert_heard("line 3: unknown key \"frame8\"");
    assert_heard("tier = hbm is ignored; expected: dram or pm");
    assert_heard("count = 1K");
    assert_heard("min-size above");
    assert_int_equal(n_heard, 6);
    assert_int_equal(p.n_sites, 1);
    assert_false(p.sites[0].has_tier);
    assert_int_equal(p.sites[0].count, 0);
    /* keys behind a broken header belong to nobody, least of all to the site before it */
    assert_int_equal(
        parse("[site a]\nframe0 = ab+0x1\ntier = dram\n[site b\ntier = pm\nreads = 9\n"), 0);
    assert_int_equal(p.sites[0].tier, HY_DRAM);
    assert_int_equal(p.sites[0].reads, 0);
    assert_int_equal(n_heard, 1);
}

/* Each is told and leaves nothing behind. */
static void assert_refused(const char *section, const char *key, const char *const *values,
                           unsigned n, const unsigned *kept)
{
    char text[256];

    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, key, values[i]);
        assert_int_equal(parse(text), 0);
        assert_int_equal(n_heard, 1);
        snprintf(text, sizeof(text), "%s = ", key);
        assert_heard(text);
        assert_int_equal(*kept, 0);
    }
}

static void test_bad_tasks(void **state)
{
    static const char *const tasks[] = {
        "aa+0x1 4K 1 2us",         "4K 1 2us 3us",        "aa+0x1 4K many 2us 3us",
        "aa+0x1 4K+ 1 2us 3us",    "aa+0x1 4K 1 2 3us",   "aa+0x1 4K 1 0us 3us",
        "aa+0x1 4K 1 2us 3us 4us", "aa+0x1 4K 1 2us 61m", "aa+0x1 1+2+3+4+5+6+7+8+9 1 2us -"};

    (void)state;
    assert_refused("tasks", "task1", tasks, HY_ARRAY_SIZE(tasks), &p.n_tasks);
    assert_int_equal(parse("[tasks]\ntask2 = aa+0x1 4K 1 - -\ntask1 = aa+0x1 4K 1 - -\nt = 1\n"),
                     0);
    assert_int_equal(p.n_tasks, 1);
    assert_heard("numbered from 1");
    assert_heard("unknown key \"t\"");
}

static void test_bad_records(void **state)
{
    static const char *const phases[] = {"0",         "0 fast", "x cpu 1",    "0 cpu 0",
                                         "0 cpu 1 2", "-1 cpu", "0 cpu 1001", "0 bandwidth 1,5"};

    (void)state;
    assert_refused("phases", "phase1", phases, HY_ARRAY_SIZE(phases), &p.n_phases);
    assert_int_equal(parse("[phases]\nphase2 = 0 cpu\nphase1 = 5 cpu\nphases = 1\n"), 0);
    assert_int_equal(p.n_phases, 1);
    assert_heard("numbered from 1");
    assert_heard("unknown key \"phases\" is ignored; did you mean \"phase1\"?");
    static const char *const behaviours[] = {
        "1 2 3 4 1 1",    "1 2 3 4 1 1 1 1", "1 2 3 4 1.1 1 1", "1 2 3 4 1 1.1 1",
        "-1 2 3 4 1 1 1", "1 2.5 3 4 1 1 1", "1 2 x 4 1 1 1",   "1 2 3 1001 1 1 1"};
    assert_refused("behaviours", "behaviour1", behaviours, HY_ARRAY_SIZE(behaviours),
                   &p.n_behaviours);
    /* Lists that fit no behaviours go, the site stays. */
    assert_int_equal(parse("[site a]\nframe0 = ab+0x1\nreads = 5\nreads-in = 1 2\n"
                           "writes-in = 1 2 3 4 5 6 7 8 9\n"
                           "[behaviours]\nbehaviour1 = 1 2 3 4 1 1 1\n"),
                     0);
    assert_heard("up to 8 whole numbers");
    assert_heard("[site a] tells of 2 and 0 behaviours, [behaviours] of 1");
    assert_int_equal(p.n_sites, 1);
    assert_true(p.sites[0].reads == 5 && p.sites[0].n_reads_in == 0);
    assert_int_equal(
        parse("[site a]\nframe0 = ab+0x1\n"
              "heat = 1 2 3\n"
              "heat = 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
              "heat = 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 10000\n"
              "heat = 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n"),
        0);
    assert_heard("32 whole numbers up to 9999, not all of them 0");
    assert_true(p.n_sites == 1 && !p.sites[0].has_heat);
    assert_int_equal(parse("[app]\nexposure = 1.5\nforeseen = -1\nbusy-threads = many\n"
                           "[recorded]\nruns = 4294967296\nconfidence = 2\nwindow = 1\n"
                           "[modules]\nxy = /lib\nab =\n"),
                     0);
    assert_true(p.exposure < 0 && p.foreseen < 0 && p.busy_threads == 0);
    assert_int_equal(p.source.runs, 0);
    assert_heard("exposure = 1.5 is ignored; expected: a decimal number from 0 to 1");
    assert_heard("did you mean \"windows\"?");
    assert_heard("a build-id of 2 to 40 hex digits");
    assert_int_equal(n_heard, 8);
}

static void test_long_lines(void **state)
{
    static char text[100000];
    size_t n;

    (void)state;
    strcpy(text, "[app]\nexe = ");
    n = strlen(text);
    /* 198 bytes are the longest line, and arrive whole; one more is told */
    memset(text + n, 'x', 198 - strlen("exe = "));
    strcpy(text + strlen("[app]\n") + 198, "\n");
    assert_int_equal(parse(text), 0);
    assert_int_equal(strlen(p.exe), 192);
    assert_int_equal(n_heard, 0);
    strcpy(text + strlen("[app]\n") + 198, "x\n");
    assert_int_equal(parse(text), 0);
    assert_string_equal(p.exe, "");
    assert_int_equal(n_heard, 1);
    memset(text + n, 'x', sizeof(text) - n - 1);
    memcpy(text + sizeof(text) - 20, "\nfootprint = 1\n", 16);
    assert_int_equal(parse(text), 0);
    assert_heard("line 2: the line has more than");
    assert_string_equal(p.exe, "");
    assert_int_equal(p.footprint, 1); /* and not half a line taken for the next one */
    assert_int_equal(n_heard, 1);
    memset(text, '#', 50000); /* comments may be long */
    memcpy(text + 50000, "\n[app]\n", 8);
    assert_int_equal(parse(text), 0);
    assert_int_equal(n_heard, 0);
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As large as is read at all; checkers that are 100 times slower get a part. */
static size_t hostile_bytes(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return PROFILE_MAX_BYTES / 64;
#else
    return getenv("HY_TEST_SMALL") ? PROFILE_MAX_BYTES / 64 : PROFILE_MAX_BYTES;
#endif
}

/* Fill it with numbered pieces; bounded time, bounded messages. */
static void hostile(const char *head, const char *before, bool numbered, const char *after)
{
    static char text[PROFILE_MAX_BYTES + 256];
    size_t n = strlen(strcpy(text, head));
    double start;

    for (unsigned i = 0; n < hostile_bytes() - 128; i++) {
        if (numbered)
            n += (size_t)snprintf(text + n, 128, "%s%u%s", before, i, after);
        else
            n = (size_t)(stpcpy(text + n, before) - text);
    }
    start = cpu_seconds();
    (void)parse_bytes(text, n);
    assert_true(n_heard <= PROFILE_MAX_MESSAGES + 2);
    /* The worst took 0.9 s; 100 times more under sanitizers. Anything quadratic in
     * 8 MiB would take hours. */
    assert_true(cpu_seconds() - start < 300);
}

static void test_hostile(void **state)
{
    (void)state;
    hostile("", "[site ", true, "]\n");
    assert_heard("sites beyond the first 1024 are ignored");
    hostile("", "[site ", true, "]\nframe0 = ab+0x1\n");
    assert_int_equal(p.n_sites, PROFILE_MAX_SITES);
    hostile("[site a]\n", "[site a]\n", false, NULL);
    assert_int_equal(p.n_sites, 0);
    hostile("[app]\n", "exe = ", true, "\n");
    assert_heard("more problems are not shown");
    hostile("[app]\n", "[x", true, "]\n");
    hostile("[app]\n", "key", true, " = 1\n");
    hostile("[options]\n", "dram", true, " = 1\n");
    hostile("[app]\n", "=\n", false, NULL);
    hostile("[app]\n", "\n", false, NULL);
    hostile("[app]\n", "[\n", false, NULL);
    hostile("[app]\nexe = ", "a", false, NULL);
    hostile("[", "[", false, NULL);
    hostile("[app]\nclass = ", ";", false, NULL);
}

/* Single bytes changed everywhere: the result stays within its bounds. */
static void test_flipped_bytes(void **state)
{
    static const unsigned char bytes[] = {0, '\n', '[', ']', '=', ';', 0xff, ' ', '9'};
    char text[sizeof(full)];

    (void)state;
    for (size_t at = 0; at < sizeof(full) - 1; at++)
        for (unsigned b = 0; b < sizeof(bytes); b++) {
            memcpy(text, full, sizeof(full));
            text[at] = (char)bytes[b];
            int r = parse_bytes(text, sizeof(full) - 1);

            assert_true(r == 0 || r == -EINVAL);
            if (r == 0) {
                assert_true(p.n_sites <= 3 && p.n_options <= OPT_COUNT);
                for (unsigned i = 0; i < p.n_sites; i++)
                    assert_in_range(p.sites[i].n_frames, 1, PROFILE_MAX_FRAMES);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),   cmocka_unit_test(test_not_a_profile),
        cmocka_unit_test(test_bad_lines),   cmocka_unit_test(test_bad_after_good),
        cmocka_unit_test(test_bad_sites),   cmocka_unit_test(test_bad_tasks),
        cmocka_unit_test(test_bad_records), cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_hostile),     cmocka_unit_test(test_flipped_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
