/* SPDX-License-Identifier: BSD-2-Clause
 * The table of what a process reports: each field is written by its unit as a person reads it, as
 * JSON and in a trace's samples, and the lines of the text report name only fields that there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/fields.h"
#include "report/report_parts.h"

static struct report r;
static char text[1 << 16];
static struct textbuf o;

static int begin(void **state)
{
    (void)state;
    memset(&r, 0, sizeof(r));
    memset(text, 0, sizeof(text));
    o = (struct textbuf){.buf = text, .cap = sizeof(text)};
    r.exe[0] = 'x';
    return 0;
}

static const char *as_text(const char *name)
{
    o.len = 0;
    text[0] = '\0';
    assert_true(fields_text(&o, &r, name, strlen(name)));
    return text;
}

static void units_as_a_person_reads_them(void **state)
{
    (void)state;
    r.now.migrate.up_bytes = 10 * HY_MIB;
    r.now.tasks.staged_pages = 3;
    r.now.tasks.saved_ns = -2500000;
    r.now.classify.found.slowdown = 1.996;
    r.now.classify.found.cls = HY_CLASS_LATENCY;
    r.now.threads.running_milli = 3456;
    r.now.migrate.state = MIGRATE_IS_OFF;
    r.admission.pid = 42;
    r.tier[HY_PM].limit = UINT64_MAX;
    r.tier[HY_DRAM].limit = 11 * HY_GIB;
    assert_string_equal(as_text("migration.up_bytes"), "10.0 MiB");
    assert_string_equal(as_text("tasks.staged_bytes"), "12.0 KiB");
    assert_string_equal(as_text("tasks.saved_ns"), "-2.5 ms");
    assert_string_equal(as_text("classification.slowdown_milli"), "2.00");
    assert_string_equal(as_text("classification.class"), "latency");
    assert_string_equal(as_text("threads.running_milli"), "3.46");
    assert_string_equal(as_text("migration.state"), "off");
    assert_string_equal(as_text("admission.for_pid"), "42");
    assert_string_equal(as_text("pm.limit"), "-");
    assert_string_equal(as_text("dram.limit"), "11.0 GiB");
    assert_string_equal(as_text("run.exe"), "x");
    assert_string_equal(as_text("run.why"), ""); /* NULL */
}

static void what_is_not_a_field(void **state)
{
    const char *const names[] = {"",       ".",        "exe",         "run.",
                                 "run.ex", "run.exes", "tier.limits", "x.exe"};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(names); i++) {
        assert_false(fields_text(&o, &r, names[i], strlen(names[i])));
        assert_false(fields_has(&r, names[i], strlen(names[i])));
    }
    assert_int_equal(o.len, 0);
}

static void json_of_each_type(void **state)
{
    (void)state;
    r.now.classify.found.ebw[HY_DRAM] = 0.5;
    r.now.classify.found.weak = true;
    r.now.tasks.saved_ns = -7;
    r.now.tasks.evicted_pages = 2;
    r.no_accesses = "say \"no\"";
    fields_json(&o, "classification", &r);
    assert_non_null(strstr(text, "\"weak\": true, "));
    assert_non_null(strstr(text, "\"write_intensive\": false, "));
    assert_non_null(strstr(text, "\"ebw_milli\": [500, 0], "));
    fields_json(&o, "tasks", &r);
    assert_non_null(strstr(text, "\"saved_ns\": -7, "));
    assert_non_null(strstr(text, "\"evicted_bytes\": 8192, "));
    fields_json(&o, "record", &r);
    assert_non_null(strstr(text, "\"why\": \"say \\\"no\\\"\""));
}

/* How often `, "name": ` or its like comes. */
static unsigned count(const char *in, const char *what)
{
    unsigned n = 0;
    for (; (in = strstr(in, what)) != NULL; in += strlen(what))
        n++;
    return n;
}

static void a_sample_has_each_name_once_and_numbers_only(void **state)
{
    char name[64];

    (void)state;
    r.now.classify.found.weak = true;
    fields_samples(&o, &r.now);
    assert_null(strstr(text, "true"));
    for (const char *at = text; (at = strstr(at, ", \"")) != NULL; at++) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)(strcspn(at + 3, "\"") + 4), at);
        assert_int_equal(count(text, name), 1);
    }
    assert_true(count(text, ", \"") > 20);
}

/* Whatever is set: all bytes of the numbers are 1, so that every line comes, or none, or some. */
static void lines_name_fields_that_there_are(void **state)
{
    static const unsigned char fill[] = {0, 1};

    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(fill); i++)
        for (unsigned weak = 0; weak < 2; weak++) {
            memset(&r.now, fill[i], sizeof(r.now));
            memset(r.tier, fill[i], sizeof(r.tier));
            memset(&r.plan, fill[i], sizeof(r.plan));
            memset(&r.search, fill[i], sizeof(r.search));
            memset(&r.record, fill[i], sizeof(r.record));
            r.now.classify.found.cls = HY_CLASS_CPU;
            r.now.migrate.state = MIGRATE_IDLE;
            r.now.migrate.why[0] = '\0';
            r.now.migrate.way = r.now.migrate.reads = r.now.migrate.writes = "way";
            r.now.classify.found.weak = weak;
            r.admission = (struct admission_view){.asked = fill[i]};
            r.slower_percent = r.file_private = fill[i];
            o.len = 0;
            report_lines(&o, &r);
            assert_false(o.full);
            assert_null(strpbrk(text, "{}[]!"));
            assert_int_equal(strstr(text, "pages moved: ") != NULL, fill[i]);
            assert_int_equal(strstr(text, "slowdown on PM") != NULL, fill[i] && !weak);
            assert_int_equal(strstr(text, "slower by 1 % at most") != NULL, fill[i]);
            assert_int_equal(strstr(text, "alone (no registry)") != NULL, !fill[i]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(units_as_a_person_reads_them, begin),
        cmocka_unit_test_setup(what_is_not_a_field, begin),
        cmocka_unit_test_setup(json_of_each_type, begin),
        cmocka_unit_test_setup(a_sample_has_each_name_once_and_numbers_only, begin),
        cmocka_unit_test_setup(lines_name_fields_that_there_are, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
