/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles as they are written, and put together from windows of counts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "classify/rules/run_facts.h"
#include "record/rules/profile_write.h"
#include "profile_util.h"

static struct profile_site sites_a[PROFILE_MAX_SITES], sites_b[PROFILE_MAX_SITES];
static char text[PROFILE_WRITE_CAP(PROFILE_MAX_SITES)];

static double milli(uint64_t below)
{
    return (double)any(below) / 1000;
}

static void random_profile(struct profile *p, unsigned n_sites)
{
    empty(p, sites_a);
    strcpy(p->exe, "my app#1");
    strcpy(p->args, "*--x = [y]*");
    p->build_id_len = 20;
    for (unsigned k = 0; k < BUILD_ID_MAX; k++)
        p->build_id[k] = (uint8_t)(1 + any(255));
    p->cls = (enum hy_class)any(HY_CLASS_MAX);
    p->slowdown = 0.001 + milli(20000);
    p->write_intensive = (int)any(3) - 1;
    p->footprint = any((uint64_t)1 << 50);
    p->exposure = milli(1001);
    p->foreseen = milli(1001);
    p->busy_threads = milli(100000);
    p->threads[HY_DRAM] = (uint32_t)any(1025);
    p->threads_seen = (uint32_t)any(1025);
    p->n_phases = (unsigned)any(PROFILE_MAX_PHASES + 1);
    for (unsigned i = 0; i < p->n_phases; i++)
        p->phases[i] = (struct profile_phase){any(1 << 30), (enum hy_class)any(HY_CLASS_MAX),
                                              any(2) ? 0.001 + milli(20000) : 0};
    p->n_behaviours = (unsigned)any(PROFILE_BEHAVIOURS + 1);
    for (unsigned i = 0; i < p->n_behaviours; i++)
        p->behaviours[i] = (struct profile_behaviour){
            milli(1 << 20), any(UINT32_MAX), any(UINT32_MAX), milli(20000),
            milli(1001),    milli(1001),     milli(100000)};
    p->n_tasks = (unsigned)any(PROFILE_MAX_TASKS + 1);
    for (unsigned i = 0; i < p->n_tasks; i++)
        random_task(&p->tasks[i]);
    p->option[p->n_options].id = OPT_DRAM;
    strcpy(p->option[p->n_options++].value, "25%");
    strcpy(p->source.method, "hardware (PAPI): 5 events of 8 threads");
    p->source.runs = (uint32_t)any(9);
    p->source.ms = any(1 << 30);
    p->source.confidence = milli(1001);
    p->source.samples = any(1 << 20);
    strcpy(p->source.accesses, p->source.samples ? "load-samples and store-samples" : "");
    p->source.known = p->source.samples ? milli(100001) : 0;
    p->source.mapped = p->source.samples ? milli(100001) : 0;
    p->n_sites = n_sites;
    for (unsigned i = 0; i < n_sites; i++) {
        struct profile_site *s = &p->sites[i];

        random_site(s, i);
        s->n_reads_in = any(4) ? (uint8_t)p->n_behaviours : 0;
        s->has_heat = any(2);
        for (unsigned b = 0; b < PROFILE_BINS; b++)
            s->heat[b] = (uint16_t)(s->has_heat ? any(PROFILE_HEAT_MOST) + (b == 9) : 0);
        s->n_writes_in = any(4) ? (uint8_t)p->n_behaviours : 0;
        for (unsigned b = 0; b < p->n_behaviours; b++) {
            s->reads_in[b] = s->n_reads_in ? any(UINT32_MAX) : 0;
            s->writes_in[b] = s->n_writes_in ? any(UINT32_MAX) : 0;
        }
    }
}

static bool near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static void assert_same(const struct profile *a, const struct profile *b)
{
    assert_string_equal(a->exe, b->exe);
    assert_string_equal(a->args, b->args);
    assert_memory_equal(a->build_id, b->build_id, BUILD_ID_MAX);
    assert_int_equal(a->cls, b->cls);
    assert_true(near(a->slowdown, b->slowdown) && a->write_intensive == b->write_intensive);
    assert_true(a->footprint == b->footprint && near(a->exposure, b->exposure));
    assert_true(near(a->foreseen, b->foreseen) && near(a->busy_threads, b->busy_threads));
    assert_memory_equal(a->threads, b->threads, sizeof(a->threads));
    assert_int_equal(a->threads_seen, b->threads_seen);
    assert_int_equal(a->n_phases, b->n_phases);
    for (unsigned i = 0; i < a->n_phases; i++) {
        assert_true(a->phases[i].start_ms == b->phases[i].start_ms);
        assert_int_equal(a->phases[i].cls, b->phases[i].cls);
        assert_true(near(a->phases[i].slowdown, b->phases[i].slowdown));
    }
    assert_int_equal(a->n_behaviours, b->n_behaviours);
    for (unsigned i = 0; i < a->n_behaviours; i++) {
        const struct profile_behaviour *x = &a->behaviours[i], *y = &b->behaviours[i];
        assert_true(near(x->ms, y->ms) && x->reads == y->reads && x->writes == y->writes);
        assert_true(near(x->slowdown, y->slowdown) && near(x->exposure, y->exposure));
        assert_true(near(x->foreseen, y->foreseen) && near(x->busy_threads, y->busy_threads));
    }
    assert_int_equal(a->n_tasks, b->n_tasks);
    assert_memory_equal(a->tasks, b->tasks, a->n_tasks * sizeof(a->tasks[0]));
    assert_int_equal(a->n_options, b->n_options);
    assert_string_equal(a->option[0].value, b->option[0].value);
    assert_string_equal(a->source.method, b->source.method);
    assert_string_equal(a->source.accesses, b->source.accesses);
    assert_true(a->source.runs == b->source.runs && a->source.ms == b->source.ms);
    assert_true(near(a->source.confidence, b->source.confidence));
    assert_true(a->source.samples == b->source.samples && near(a->source.known, b->source.known));
    assert_true(near(a->source.mapped, b->source.mapped));
    assert_int_equal(a->n_sites, b->n_sites);
    for (unsigned i = 0; i < a->n_sites; i++)
        assert_memory_equal(&a->sites[i], &b->sites[i], sizeof(a->sites[i]));
}

static int64_t write_text(const struct profile *p)
{
    return profile_write(p, NULL, 0, "", text, sizeof(text));
}

static void test_round_trip(void **state)
{
    static struct profile p, back;

    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        random_profile(&p, round == 0 ? PROFILE_MAX_SITES : (unsigned)any(20));
        int64_t len = write_text(&p);
        assert_true(len > 0);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= PROFILE_LINE_MAX);
        heard[0] = '\0';
        back.sites = sites_b;
        assert_int_equal(profile_parse(text, (size_t)len, "x", &back, hear, NULL), 0);
        assert_string_equal(heard, "");
        assert_same(&p, &back);
        assert_true(profile_write(&p, NULL, 0, "", text, (size_t)len / 2) == -ENOSPC);
    }
}

/* Texts that an INI file would give back otherwise stay out of it, and cost nothing else. */
static void test_hostile_texts(void **state)
{
    static const char *const texts[] = {"a ;b", " a", "a ", "a\nb", ";a", "\x01", ""};
    static struct profile p, back;
    char long_name[256];

    (void)state;
    for (unsigned i = 0; i <= HY_ARRAY_SIZE(texts); i++) {
        random_profile(&p, 1);
        memset(long_name, 'n', sizeof(long_name) - 1);
        long_name[255] = '\0';
        strcpy(p.exe, i < HY_ARRAY_SIZE(texts) ? texts[i] : long_name);
        int64_t len = profile_write(&p, NULL, 0, "two\nlines", text, sizeof(text));
        assert_true(len > 0 && strncmp(text, "# two\n# lines\n", 14) == 0);
        heard[0] = '\0';
        back.sites = sites_b;
        assert_int_equal(profile_parse(text, (size_t)len, "x", &back, hear, NULL), 0);
        assert_string_equal(heard, "");
        assert_string_equal(back.exe, "");
        p.exe[0] = '\0';
        assert_same(&p, &back);
    }
}

static void test_rank(void **state)
{
    static struct profile p;

    (void)state;
    empty(&p, sites_a);
    for (unsigned i = 0; i < 600; i++) {
        struct profile_site *s = &p.sites[i];
        memset(s, 0, sizeof(*s));
        s->n_frames = 1;
        s->frames[0].offset = i;
        s->bytes = s->live_bytes = 10;
    }
    p.n_sites = 600;
    p.sites[77].bytes = 1000;      /* much in all */
    p.sites[88].live_bytes = 2000; /* much at a time */
    p.sites[99].bytes = 0;
    p.sites[99].live_bytes = 0;
    p.sites[99].reads = 1; /* small, and all that is read */
    assert_int_equal(profile_rank_sites(&p, 0.01, PROFILE_MAX_SITES), 597);
    assert_int_equal(p.n_sites, 3);
    assert_int_equal(p.sites[0].frames[0].offset, 99);
    assert_int_equal(p.sites[1].frames[0].offset, 88);
    assert_int_equal(p.sites[2].frames[0].offset, 77);
    profile_number_sites(&p);
    assert_string_equal(p.sites[2].name, "s3");
    assert_int_equal(profile_rank_sites(&p, 0, 2), 1);
    assert_int_equal(p.n_sites, 2);
    p.n_sites = 0;
    assert_int_equal(profile_rank_sites(&p, 0.5, 2), 0);
}

/* 100 ms on DRAM; so many lines are read, of which a share was foreseen. */
static struct window window_of(double reads, double foreseen, double stall_ns)
{
    struct window w = {0};

    window_set(&w, WINDOW_elapsed_ns, 100000000);
    window_set(&w, WINDOW_busy_ns, 100000000);
    window_set(&w, WINDOW_instructions, 100000000);
    window_set(&w, WINDOW_reads, (uint64_t)reads);
    window_set(&w, WINDOW_reads_pm, 0);
    window_set(&w, WINDOW_writes, 0);
    window_set(&w, WINDOW_writes_pm, 0);
    window_set(&w, WINDOW_foreseen, (uint64_t)(reads * foreseen));
    window_set(&w, WINDOW_stall_ns, (uint64_t)stall_ns);
    window_set(&w, WINDOW_wait_ns, 0);
    window_set(&w, WINDOW_threads, 3);
    return w;
}

static void test_run_facts(void **state)
{
    static struct profile p;
    struct class_rules rules = class_rules_default();
    struct machine_figures f;
    struct classifier c;
    struct run_facts r;

    (void)state;
    assert_int_equal(figures_default("pram", &f), 0);
    classifier_init(&c, &rules);
    memset(&r, 0, sizeof(r));
    empty(&p, sites_a);
    run_facts_get(&r, &f, &rules, &p);
    assert_int_equal(p.cls, HY_CLASS_UNKNOWN);
    /* Ten windows of computing, then thirty of a chain of misses that take nine tenths. */
    for (unsigned i = 0; i < 40; i++) {
        double lines = 0.9e8 / f.medium[HY_DRAM].read_ns;
        struct window w = i < 10 ? window_of(1000, 1, 1000) : window_of(lines, 0, 0.9e8);
        classifier_feed(&c, &f, &w);
        run_facts_add(&r, &f, &w, &c.now);
    }
    run_facts_get(&r, &f, &rules, &p);
    assert_int_equal(p.source.windows, 40);
    assert_int_equal(p.source.ms, 4000);
    assert_int_equal(p.cls, HY_CLASS_LATENCY);
    assert_int_equal(p.n_phases, 2);
    assert_int_equal(p.phases[0].cls, HY_CLASS_CPU);
    assert_true(near(p.phases[0].slowdown, 1) || p.phases[0].slowdown < 1.05);
    assert_int_equal(p.phases[1].cls, HY_CLASS_LATENCY);
    assert_true(p.phases[1].start_ms >= 1000 && p.phases[1].start_ms <= 1300);
    double ratio = f.medium[HY_PM].read_ns / f.medium[HY_DRAM].read_ns;
    double phase = 0.1 + 0.9 * ratio, whole = (10 + 30 * phase) / 40;
    assert_true(p.phases[1].slowdown > 0.95 * phase && p.phases[1].slowdown < 1.05 * phase);
    assert_true(p.slowdown > 0.95 * whole && p.slowdown < 1.05 * whole);
    assert_true(p.exposure > 0.9 && p.foreseen < 0.01);
    assert_true(p.busy_threads > 0.99 && p.busy_threads < 1.01);
    assert_true(p.source.confidence > 0.3);
    assert_true(window_get(&r.run.most, WINDOW_threads) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_rank),

        cmocka_unit_test(test_run_facts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
