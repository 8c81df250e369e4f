/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles as they are written, merged, and put together from windows of counts. */
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
#include "tools/ctl/rules/profile_merge.h"

static char heard[4096];

static void hear(void *ctx, const char *message)
{
    (void)ctx;
    snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s\n", message);
}

static uint64_t seed = 1;

static uint64_t any(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % below;
}

static struct profile_site sites_a[PROFILE_MAX_SITES], sites_b[PROFILE_MAX_SITES];
static char text[PROFILE_WRITE_CAP(PROFILE_MAX_SITES)];

static void empty(struct profile *p, struct profile_site *sites)
{
    memset(p, 0, sizeof(*p));
    p->sites = sites;
    p->write_intensive = -1;
    p->exposure = p->foreseen = -1;
}

static double milli(uint64_t below)
{
    return (double)any(below) / 1000;
}

static void random_site(struct profile_site *s, unsigned i)
{
    memset(s, 0, sizeof(*s));
    snprintf(s->name, sizeof(s->name), "f_%u+0x%x", i, (unsigned)any(4096));
    s->n_frames = (uint8_t)(1 + any(PROFILE_MAX_FRAMES));
    for (unsigned f = 0; f < s->n_frames; f++) {
        for (unsigned k = 0; k < BUILD_ID_MAX; k++)
            s->frames[f].build_id[k] = (uint8_t)any(256);
        if (any(4) == 0) /* shorter ones, as of other linkers */
            memset(s->frames[f].build_id + 8, 0, BUILD_ID_MAX - 8);
        s->frames[f].offset = any(4) ? any(1 << 30) : UINT64_MAX - any(9);
    }
    s->nth = (uint8_t)any(3);
    s->has_tier = any(2);
    s->tier = s->has_tier && any(2) ? HY_PM : HY_DRAM;
    s->count = any(3) ? any(1 << 20) : UINT64_MAX;
    s->bytes = any((uint64_t)1 << 50);
    s->live_bytes = any(1 << 30);
    s->max_size = 1 + any(1 << 30);
    s->min_size = 1 + any(s->max_size);
    s->reads = any(UINT32_MAX);
    s->writes = any(UINT32_MAX);
    s->from = (double)any(1000) / 1000;
    s->until = (double)any(1000) / 1000;
}

static void random_task(struct profile_task *t)
{
    memset(t, 0, sizeof(*t));
    for (unsigned k = 0; k < BUILD_ID_MAX; k++)
        t->code.build_id[k] = (uint8_t)any(256);
    t->code.offset = any(1 << 30);
    t->needs = (uint8_t)(1 + any(PROFILE_MAX_NEEDS));
    for (unsigned i = 0; i < t->needs; i++)
        t->bytes[i] = any(1 << 24) * HY_PAGE;
    t->count = any(1 << 30);
    for (int tier = 0; tier < HY_TIERS; tier++)
        t->ns[tier] = any(3) ? any(3000000) * 1000 : 0;
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
    for (unsigned i = 0; i < n_sites; i++)
        random_site(&p->sites[i], i);
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
    run_facts_begin(&r);
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
    assert_true(window_get(&r.most, WINDOW_threads) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_rank),        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_merge_again), cmocka_unit_test(test_merge_tasks),
        cmocka_unit_test(test_run_facts),   cmocka_unit_test(test_fold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
