/* SPDX-License-Identifier: BSD-2-Clause
 * Machine files and recordings: what is written is read again as it was; what is wrong is
 * told with its line and leaves nothing behind. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "classify/rules/machine_figures.h"
#include "classify/rules/recording.h"

static char told[4096];
static unsigned n_told;

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    n_told++;
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s\n", message);
}

static void quiet(void)
{
    told[0] = '\0';
    n_told = 0;
}

#define DRAM "[dram]\nread-ns=80\nwrite-ns=80\nseq-read-mbs=48000\nseq-write-mbs=40000\n"
#define PM   "[pm]\nread-ns=240\nwrite-ns=640\nseq-read-mbs=12000\nseq-write-mbs=4000\n"
#define HEAD "[machine]\nversion = 1\n"

static int parse(const char *text, struct machine_figures *f)
{
    quiet();
    return figures_parse(text, strlen(text), "m.ini", f, hear, NULL);
}

static void test_defaults(void **state)
{
    struct machine_figures f;

    (void)state;
    assert_true(figures_count() >= 5);
    assert_null(figures_name(figures_count()));
    assert_int_equal(figures_default("none", &f), -ENOENT);
    for (size_t i = 0; i < figures_count(); i++) {
        assert_int_equal(figures_default(figures_name(i), &f), 0);
        assert_int_equal(f.source, FIGURES_DEFAULT);
        for (int t = 0; t < HY_TIERS; t++) {
            const struct medium_figures *m = &f.medium[t];
            assert_true(m->read_ns > 0 && m->write_ns > 0 && m->read_knee > 0);
            assert_true(m->random_read_mbs > 0 && m->random_read_mbs <= m->seq_read_mbs);
            assert_true(m->random_write_mbs > 0 && m->random_write_mbs <= m->seq_write_mbs);
        }
        /* PM is nowhere faster: else it would not be PM. */
        assert_true(f.medium[HY_PM].read_ns >= f.medium[HY_DRAM].read_ns);
        assert_true(f.medium[HY_PM].seq_read_mbs <= f.medium[HY_DRAM].seq_read_mbs);
        assert_true(f.medium[HY_PM].seq_write_mbs <= f.medium[HY_DRAM].seq_write_mbs);
    }
}

static void test_file(void **state)
{
    struct machine_figures f;

    (void)state;
    assert_int_equal(parse("# measured\r\n" HEAD "name = box 1\r\n source = hmat\n" PM
                           "\tread-knee = 3.5\n; more\n" DRAM
                           "[interference]\ndram-write-left = 2.5\n",
                           &f),
                     0);
    assert_string_equal(told, "");
    assert_string_equal(f.name, "box 1");
    assert_int_equal(f.source, FIGURES_HMAT);
    assert_true(f.medium[HY_PM].read_ns == 240 && f.medium[HY_PM].read_knee == 3.5);
    assert_true(f.medium[HY_DRAM].seq_write_mbs == 40000);
    assert_true(f.medium[HY_DRAM].random_write_mbs == 40000); /* not said: as sequential */
    assert_true(f.dram_write_left == 2.5 && f.dram_read_left == 100 && f.cycle_ns == 0.4);
}

static void test_all_of_a_file_is_read(void **state)
{
    struct machine_figures f;

    (void)state;
    assert_int_equal(parse(HEAD "name=box\nmeasured=2026-11-21\ncpu=x86,1\npm=node\n"
                                "dram-mib=1024.5\npm-mib=4096\n" DRAM PM
                                "[curve pm seq-read]\n1=10\n2=20.25\n",
                           &f),
                     0);
    assert_string_equal(f.measured, "2026-11-21");
    assert_string_equal(f.of.cpu, "x86,1");
    assert_string_equal(f.of.pm, "node");
    assert_true(f.of.dram_mib == 1024.5 && f.of.pm_mib == 4096);
}

static void test_wrong_files(void **state)
{
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "[machine] has no version"},
        {"rubbish", "line 1: the line is neither a section nor key = value"},
        {DRAM PM, "[machine] has no version"},
        {"[machine]\nversion=2\n" DRAM PM, "line 2: it is of another version than 1"},
        {HEAD DRAM, "[pm] lacks read-ns"},
        {HEAD DRAM PM "read-ns=1\n", "line 13: read-ns of [pm] is given twice"},
        {HEAD DRAM PM "wr=1\n", "there is no key \"wr\""},
        {HEAD DRAM PM "[disk]\nread-ns=1\n", "line 14: there is no key \"read-ns\""},
        {HEAD "cycle-ns=0\n" DRAM PM, "line 3: cycle-ns = \"0\" is not a number from 0.01 to 100"},
        {HEAD "cycle-ns=nan\n" DRAM PM, "cycle-ns = \"nan\" is not a number"},
        {HEAD "cycle-ns=1e1\n" DRAM PM, "cycle-ns = \"1e1\" is not a number"},
        {HEAD "cycle-ns=\n" DRAM PM, "cycle-ns = \"\" is not a number"},
        {HEAD "source=guess\n" DRAM PM, "source has to be measured, hmat or default"},
        {HEAD DRAM PM "[pm\n", "line 13: a section header ends in ']'"},
        {HEAD DRAM PM "[interference]\npm-left=101\n", "not a number from 0 to 100"},
        {HEAD "pm=a\tb\n" DRAM PM, "line 3: pm has to be up to 63 printable characters"},
        {HEAD DRAM PM "[curve x]\n0 = 5\n", "line 14: \"0\" is not a number of threads"},
        {HEAD DRAM PM "[curve x]\n4097 = 5\n", "\"4097\" is not a number of threads"},
        {HEAD DRAM PM "[curve x]\n2 = fast\n", "2 = \"fast\" is not a bandwidth"},
    };

    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(wrong); i++) {
        struct machine_figures f, before;
        memset(&f, 0x5a, sizeof(f));
        before = f;
        assert_int_equal(parse(wrong[i].text, &f), -EINVAL);
        assert_memory_equal(&f, &before, sizeof(f));
        if (!strstr(told, wrong[i].message))
            fail_msg("%zu: \"%s\" is not in: %s", i, wrong[i].message, told);
        assert_in_range(n_told, 1, FIGURES_MAX_MESSAGES);
    }
}

static void test_long_lines(void **state)
{
    char text[4096];
    struct machine_figures f;

    (void)state;
    snprintf(text, sizeof(text), HEAD "name = %0300d\n" DRAM PM, 7);
    assert_int_equal(parse(text, &f), -EINVAL);
    assert_non_null(strstr(told, "line 3: the line has more than 118 bytes"));
    assert_int_equal(n_told, 1);
    assert_int_equal(figures_parse("a\0b", 3, "m.ini", &f, hear, NULL), -EINVAL);
    assert_int_equal(figures_parse(NULL, 0, "m.ini", &f, hear, NULL), -EINVAL);
}

static void test_recording(void **state)
{
    struct window w = {0}, all = {0}, got;
    struct recording r;
    char text[4 * RECORDING_LINE_CAP];
    size_t n;

    (void)state;
    for (int f = 0; f < WINDOW_FIELD_COUNT; f++)
        window_set(&all, (enum window_field)f, UINT64_MAX - (uint64_t)f);
    window_set(&w, WINDOW_reads, 7);
    n = recording_write_header("sde:::pmemu", text, sizeof(text));
    n += recording_write_window(&w, text + n, RECORDING_LINE_CAP);
    n += recording_write_window(&all, text + n, RECORDING_LINE_CAP);
    assert_int_equal(strlen(text), n);
    quiet();
    assert_int_equal(recording_open(&r, text, n, hear, NULL), 0);
    assert_int_equal(recording_next(&r, &got, hear, NULL), 1);
    assert_string_equal(r.source, "sde:::pmemu");
    assert_memory_equal(&got, &w, sizeof(w));
    assert_int_equal(recording_next(&r, &got, hear, NULL), 1);
    assert_memory_equal(&got, &all, sizeof(w));
    assert_int_equal(recording_next(&r, &got, hear, NULL), 0);
    assert_int_equal(recording_next(&r, &got, hear, NULL), 0);
    assert_int_equal(n_told, 0);
}

/* A wrong line costs that line. */
static void test_wrong_recording(void **state)
{
    static const char text[] = "hybrid-recording 1\n\n# note\nw reads=1\n"
                               "w reads=-1\nw reads\nw rats=3\nx\nw  \nw reads=1 reads=2\n"
                               "w reads=18446744073709551616\n\tw\treads=3\r\n";
    static const char *const messages[] = {"line 5: this is not NAME=NUMBER: \"reads=-1\"",
                                           "line 6: this is not NAME=NUMBER",
                                           "line 7: there is no such count: \"rats\"",
                                           "line 8: the line is neither a window",
                                           "line 9: the line is neither",
                                           "line 11: this is not NAME=NUMBER"};
    struct recording r;
    struct window w;
    uint64_t sum = 0;
    int e;

    (void)state;
    quiet();
    assert_int_equal(recording_open(&r, text, strlen(text), hear, NULL), 0);
    while ((e = recording_next(&r, &w, hear, NULL)) != 0)
        if (e > 0)
            sum += w.value[WINDOW_reads];
    assert_int_equal(sum, 1 + 2 + 3);
    assert_int_equal(n_told, HY_ARRAY_SIZE(messages));
    for (size_t i = 0; i < HY_ARRAY_SIZE(messages); i++)
        if (!strstr(told, messages[i]))
            fail_msg("\"%s\" is not in: %s", messages[i], told);
    assert_int_equal(recording_open(&r, "", 0, hear, NULL), -EINVAL);
    assert_int_equal(recording_open(&r, "hybrid-recording 2\n", 19, hear, NULL), -EINVAL);
    assert_non_null(strstr(told, "of another version"));
    assert_int_equal(recording_open(&r,
                                    "\x7f"
                                    "ELF",
                                    4, hear, NULL),
                     -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_all_of_a_file_is_read),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_recording),
        cmocka_unit_test(test_wrong_recording),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
