/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles: what good ones say, and that bad ones cost a few lines and no more. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "settings/rules/profile.h"

static struct profile p;
static struct profile_site sites[PROFILE_MAX_SITES];
static unsigned n_heard;
static char heard[16384];

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    n_heard++;
    assert_true(strlen(message) < 1024);
    for (const char *c = message; *c; c++)
        assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s\n", message);
}

static int parse_bytes(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1); /* exact size: an overread is seen by sanitizers */
    int r;

    assert_non_null(copy);
    memcpy(copy, text, len);
    n_heard = 0;
    heard[0] = '\0';
    p.sites = sites;
    r = profile_parse(copy, len, "x.ini", &p, hear, NULL);
    free(copy);
    return r;
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

static void assert_heard(const char *part)
{
    if (!strstr(heard, part))
        fail_msg("nothing says \"%s\" in:\n%s", part, heard);
}

static const char full[] = "# made by hand\n"
                           "[app]\n"
                           "exe = redis-server\n"
                           "path = /usr/*/redis-server\n"
                           "build-id = 00AB12\n"
                           "args = *--port 7777*\n"
                           "class = bandwidth\n"
                           "slowdown = 1.875\n"
                           "write-intensive = 1\n"
                           "footprint = 512M ; measured\n"
                           "exposure = 0.25\n"
                           "foreseen = 0\n"
                           "busy-threads = 7.5\n"
                           "\n"
                           "[options]\n"
                           "dram = 25%\n"
                           "mmap_min: 2M\n"
                           "site-min = 40K\n"
                           "[threads]\n"
                           "dram = 8\n"
                           "pm = 3\n"
                           "seen = 20\n"
                           "[phases]\n"
                           "phase1 = 0 bandwidth 5.97\n"
                           "phase2 = 1200 none\n"
                           "[machine]\n"
                           "figures = measured on a host\n"
                           "pm = 1T\n"
                           "cpus = 40\n"
                           "[recorded]\n"
                           "runs = 3\n"
                           "confidence = 0.875\n"
                           "known = 99.5\n"
                           "reads = 123456789012\n"
                           "[modules]\n"
                           "00ab12 = /usr/bin/redis server\n"
                           "[site dict]\n"
                           "frame0 = 00ab12+0x4f0\n"
                           "frame1 = 0123456789abcdef0123456789abcdef01234567+0xFFFFFFFFFFFFFFFF\n"
                           "tier = pm\n"
                           "count = 18446744073709551615\n"
                           "bytes = 1G\n"
                           "live-bytes = 100\n"
                           "min-size = 64\n"
                           "max-size = 64K\n"
                           "reads = 7\n"
                           "writes = 0\n"
                           "[site b c]\n"
                           "frame0=aa+0x0\n";

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

static void test_bad_records(void **state)
{
    static const char *const phases[] = {"0",         "0 fast", "x cpu 1",    "0 cpu 0",
                                         "0 cpu 1 2", "-1 cpu", "0 cpu 1001", "0 bandwidth 1,5"};
    char text[256];

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(phases); i++) {
        snprintf(text, sizeof(text), "[phases]\nphase1 = %s\n", phases[i]);
        assert_int_equal(parse(text), 0);
        assert_int_equal(n_heard, 1);
        assert_heard("phase1 = ");
        assert_int_equal(p.n_phases, 0);
    }
    assert_int_equal(parse("[phases]\nphase2 = 0 cpu\nphase1 = 5 cpu\nphases = 1\n"), 0);
    assert_int_equal(p.n_phases, 1);
    assert_heard("numbered from 1");
    assert_heard("unknown key \"phases\" is ignored; did you mean \"phase1\"?");
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
    return PROFILE_MAX_BYTES / 16;
#else
    return getenv("HY_TEST_SMALL") ? PROFILE_MAX_BYTES / 16 : PROFILE_MAX_BYTES;
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
        cmocka_unit_test(test_full),           cmocka_unit_test(test_same_file_otherwise),
        cmocka_unit_test(test_minimal),        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_not_a_profile),  cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_bad_after_good), cmocka_unit_test(test_bad_sites),
        cmocka_unit_test(test_duplicates),     cmocka_unit_test(test_options),
        cmocka_unit_test(test_long_lines),     cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_flipped_bytes),  cmocka_unit_test(test_matches),
        cmocka_unit_test(test_bad_records),    cmocka_unit_test(test_modules),
        cmocka_unit_test(test_build_id),       cmocka_unit_test(test_examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
