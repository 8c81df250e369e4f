/* SPDX-License-Identifier: BSD-2-Clause
 * Accesses of a recording by samples, on a kernel and a clock of the test's own: each sample stands
 * for as many lines as it should, loads and stores take turns on one counter, threads without a
 * ring are stood for by others, and it ends when others want the counters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "pages/sampler_rings.h"
#include "record/record_access.h"
#include "sys/usage.h"

#define MS    1000000ull
#define LOAD  1u /* configs */
#define STORE 2u
#define WORDS 3u
#define SLOTS 100u

/* --- the kernel ------------------------------------------------------------------------ */

int __wrap_os_seccomp(void);
int __wrap_os_thread_ids(int32_t *id, size_t cap);
uint64_t __wrap_os_now_ns(void);

static struct {
    uint64_t now;
    int filtered, threads;
    unsigned open, most_rings, waited_pct;
    unsigned per_look; /* samples of each ring at each look, and as many lost */
    unsigned lost;
    uint64_t source[2];      /* of loads, of stores; of AMD in turns */
    uint64_t expected[2];    /* lines */
    uint64_t rings_of[2][8]; /* by thread */
    uint64_t period[64];
    uint32_t config[64];
    uint64_t data[64][1024];
} kernel;

int __wrap_os_seccomp(void)
{
    return kernel.filtered;
}

int __wrap_os_thread_ids(int32_t *id, size_t cap)
{
    for (int i = 0; i < kernel.threads && (size_t)i < cap; i++)
        id[i] = 1000000 + i;
    return kernel.threads;
}

uint64_t __wrap_os_now_ns(void)
{
    return kernel.now;
}

int os_load_open(const struct os_load_event *e, uint64_t period, int32_t tid, unsigned order,
                 struct os_load_ring *ret)
{
    (void)order;
    assert_int_equal(kernel.filtered, 0); /* it would kill */
    if (tid && kernel.most_rings && kernel.open > kernel.most_rings)
        return -EPERM;
    unsigned i = 0;
    while (kernel.period[i])
        i++;
    assert_in_range(i, 0, 63);
    for (unsigned k = 0; tid && k < 64; k++) /* one counter */
        assert_false(kernel.period[k] && kernel.data[k][0] == (uint64_t)tid);
    kernel.period[i] = period;
    kernel.config[i] = (uint32_t)e->config;
    kernel.data[i][0] = (uint64_t)tid;
    if (tid)
        kernel.rings_of[e->config == STORE][tid - 1000000]++;
    kernel.open++;
    *ret = (struct os_load_ring){
        .base = kernel.data[i], .bytes = 4096, .tid = tid ? tid : os_gettid(), .pid = os_pid()};
    return 0;
}

static unsigned number_of(const struct os_load_ring *r)
{
    return (unsigned)(((uint64_t *)r->base - kernel.data[0]) / HY_ARRAY_SIZE(kernel.data[0]));
}

void os_load_close(struct os_load_ring *r)
{
    if (r->base) {
        kernel.period[number_of(r)] = 0;
        kernel.open--;
    }
    r->base = NULL;
}

bool os_load_records(const struct os_load_ring *r, struct os_load_records *ret)
{
    unsigned i = number_of(r), n = 0;
    uint64_t *to = kernel.data[i] + 1;
    for (; n < kernel.per_look; n++) {
        unsigned kind = kernel.config[i] == LOAD ? 0 : kernel.config[i] == STORE ? 1 : n % 2;
        to[3 * n] = (uint64_t)24 << 48 | PERF_RECORD_SAMPLE;
        to[3 * n + 1] = 0x1000000 + n;
        to[3 * n + 2] = kernel.source[kind];
        kernel.expected[kind] += kernel.period[i];
    }
    if (kernel.lost) {
        to[3 * n] = (uint64_t)24 << 48 | PERF_RECORD_LOST;
        to[3 * n + 1] = 0;
        to[3 * n++ + 2] = kernel.lost;
    }
    *ret = (struct os_load_records){(const uint8_t *)to, 4096, 24 * n, 0};
    return true;
}

void os_load_read(const struct os_load_ring *r, uint64_t tail)
{
    (void)r;
    (void)tail;
}

unsigned os_load_waited_pct(const struct os_load_ring *r)
{
    (void)r;
    return kernel.waited_pct;
}

/* --- beside it ------------------------------------------------------------------------- */

static const struct load_event loads = {
    .os = {.config = LOAD}, .filter = SAMPLE_ALL, .unit = 1, .period = 50021, .meaning = "loads"};
static const struct load_event stores = {.os = {.config = STORE},
                                         .filter = SAMPLE_MISSED_STORES,
                                         .unit = 1,
                                         .period = 1000003,
                                         .meaning = "stores"};
static const struct load_event both = {
    .filter = SAMPLE_FROM_MEMORY, .unit = 16, .period = 1 << 19, .meaning = "operations"};

static double got[2];

static void take(uintptr_t address, const double lines[ACCESS_KINDS])
{
    assert_true(address >= 0x1000000);
    assert_true((lines[0] > 0) != (lines[1] > 0));
    got[0] += lines[0];
    got[1] += lines[1];
}

static uint64_t source(uint64_t op, uint64_t level)
{
    const union perf_mem_data_src s = {.mem_op = op, .mem_lvl = level};
    return s.val;
}

static void begin(const struct load_event *l, const struct load_event *s, int threads)
{
    memset(&kernel, 0, sizeof(kernel));
    memset(got, 0, sizeof(got));
    kernel.now = 5000 * MS;
    kernel.threads = threads;
    kernel.per_look = 2;
    kernel.source[0] = source(PERF_MEM_OP_LOAD, PERF_MEM_LVL_HIT | PERF_MEM_LVL_LOC_RAM);
    kernel.source[1] = source(PERF_MEM_OP_STORE, PERF_MEM_LVL_MISS | PERF_MEM_LVL_L1);
    load_rings_use(l, s);
    assert_true(record_loads_possible());
}

static void look(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        record_loads_tick(take);
        kernel.now += 10 * MS;
    }
}

static void end(void)
{
    kernel.waited_pct = 50;
    record_loads_drain(take);
    assert_int_equal(kernel.open, 0);
    record_loads_child();
}

static bool near(double a, double b, double part)
{
    double d = a - b;
    return (d < 0 ? -d : d) <= part * b;
}

/* --- tests ----------------------------------------------------------------------------- */

static void a_sample_stands_for_its_period(void **state)
{
    struct access_sums s = {0};
    char text[96];
    (void)state;
    begin(&loads, NULL, 3);
    look(300);
    assert_int_equal(kernel.open, 3 + 1); /* all the time */
    assert_true(got[0] > 0 && near(got[0], (double)kernel.expected[0], 1e-9));
    record_loads_sums(&s);
    assert_true(s.instructions && s.lost == 0);
    assert_true(near(s.seen[ACCESS_READ], 1, 0.01) && s.seen[ACCESS_WRITTEN] == 0);
    record_loads_describe(false, text, sizeof(text));
    assert_string_equal(text, "load-samples");
    kernel.lost = 4;
    look(300);
    record_loads_sums(&s);
    assert_true(near(s.lost, 1, 0.02)); /* none, then twice as many as came */
    end();
}

static void stores_have_their_turns(void **state)
{
    struct access_sums s = {0};
    char text[96];
    (void)state;
    begin(&loads, &stores, 3);
    look(600);
    for (int k = 0; k < 2; k++)
        assert_true(got[k] > 0 && near(got[k], (double)kernel.expected[k], 1e-9));
    record_loads_sums(&s);
    assert_true(near(s.seen[0], 0.5, 0.15) && near(s.seen[0] + s.seen[1], 1, 0.01));
    record_loads_describe(true, text, sizeof(text));
    assert_string_equal(text, "load-samples and store-samples, sums by the counters");
    /* What L1 had counts nowhere. */
    kernel.source[1] = source(PERF_MEM_OP_STORE, PERF_MEM_LVL_HIT | PERF_MEM_LVL_L1);
    look(1);
    double before = got[1];
    look(100);
    assert_true(got[1] == before);
    end();
}

/* AMD: the same samples tell of both, of stores only what they have missed. */
static void samples_of_both(void **state)
{
    struct access_sums s = {0};
    (void)state;
    begin(&both, &stores, 2);
    kernel.source[1] = source(PERF_MEM_OP_STORE, PERF_MEM_LVL_NA);
    look(300);
    for (int k = 0; k < 2; k++)
        assert_true(got[k] > 0 && near(got[k], (double)kernel.expected[k], 1e-9));
    record_loads_sums(&s);
    assert_true(near(s.seen[0], 1, 0.01) && s.seen[0] == s.seen[1]);
    end();
}

static void others_stand_for_who_has_no_ring(void **state)
{
    (void)state;
    for (int threads = 4; threads <= 6; threads += 2)
        for (int with = 0; with < 2; with++) {
            begin(&loads, with ? &stores : NULL, threads);
            kernel.most_rings = 2;
            look(1200);
            for (int k = 0; k <= with; k++) {
                double each = threads / 2.0;
                assert_true(near(got[k], each * (double)kernel.expected[k], 1e-9));
                for (int i = 0; i < threads; i++)
                    assert_true(kernel.rings_of[k][i] > 0); /* in turns, with both */
            }
            end();
        }
}

static void a_flood_is_not_borne(void **state)
{
    (void)state;
    begin(&loads, NULL, 2);
    look(1);
    kernel.per_look = SLOTS;
    look(20); /* 20,000 samples a second */
    uint64_t most = 0;
    for (unsigned i = 0; i < 64; i++)
        most = HY_MAX(most, kernel.period[i]);
    assert_true(most >= 4 * loads.period);
    assert_true(near(got[0], (double)kernel.expected[0], 1e-9)); /* whatever the period was */
    end();
}

/* Others want the counters; a filter comes. */
static void it_ends_in_time(void **state)
{
    struct access_sums s = {0};
    char text[96];
    (void)state;
    for (int filter = 0; filter < 2; filter++) {
        begin(&loads, &stores, 2);
        look(200);
        if (filter) {
            kernel.filtered = 1;
            kernel.threads = 3; /* the new one would be served */
        } else {
            kernel.waited_pct = 20;
        }
        look(30);
        assert_int_equal(kernel.open, 0);
        double before = got[0] + got[1];
        kernel.filtered = 0;
        kernel.waited_pct = 0;
        look(300); /* for good */
        assert_int_equal(kernel.open, 0);
        assert_true(got[0] + got[1] == before);
        record_loads_describe(false, text, sizeof(text));
        assert_string_equal(text, "load-samples and store-samples, of the first 2.0 s");
        record_loads_sums(&s);
        assert_true(near(s.seen[0] + s.seen[1], 1, 0.02)); /* of that time */
        end();
    }
}

static void it_cannot_begin(void **state)
{
    struct access_sums s = {0};
    char text[96];
    (void)state;
    begin(&loads, NULL, 2);
    kernel.filtered = 1;
    look(10);
    kernel.filtered = 0;
    look(10);
    assert_int_equal(kernel.open, 0);
    record_loads_describe(false, text, sizeof(text));
    assert_string_equal(text, "loads cannot be sampled: EACCES");
    record_loads_sums(&s);
    assert_true(s.seen[0] == 0 && got[0] == 0);
    record_loads_child();
    load_rings_use(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_stands_for_its_period),
        cmocka_unit_test(stores_have_their_turns),
        cmocka_unit_test(samples_of_both),
        cmocka_unit_test(others_stand_for_who_has_no_ring),
        cmocka_unit_test(a_flood_is_not_borne),
        cmocka_unit_test(it_ends_in_time),
        cmocka_unit_test(it_cannot_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
