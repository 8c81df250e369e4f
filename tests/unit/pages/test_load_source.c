/* SPDX-License-Identifier: BSD-2-Clause
 * The source of reads by load samples on a kernel of the test's own (sys/pages/loads.h): who gets a
 * ring, what is borne, when it gives way, and that nothing stays open. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pages/sampler.h"
#include "pages/sampler_loads.h"
#include "sys/usage.h"
#include "tests/unit/alone.h"
#include "tests/unit/qemu.h"

#define MIB    ((size_t)1 << 20)
#define BASE   ((char *)0x10000000)
#define RECORD 24u
#define SLOTS  170u /* in a ring of the test */

/* --- the kernel --------------------------------------------------------------------------------
 */

static struct {
    unsigned open, most_open, tried;
    uint64_t bytes, most_bytes;
    uint64_t period;       /* of the last ring */
    unsigned refuse_after; /* rings, with -EPERM */
    int error;             /* of each opening */
    int filtered;
    unsigned waited_pct;
    unsigned samples; /* in each ring at each look */
    int32_t ended;    /* a thread that is not there any more */
    int32_t served[256];
    unsigned n_served;
} kernel;
static uint64_t ring_words[SLOTS * RECORD / 8 + 64];
static int32_t own;

/* Every caller's (meson.build): a filter that comes in the middle of a pass. */
int __wrap_os_seccomp(void);
int __wrap_os_seccomp(void)
{
    return kernel.filtered;
}

int os_load_open(const struct os_load_event *e, uint64_t period, int32_t tid, unsigned order,
                 struct os_load_ring *ret)
{
    (void)e;
    assert_int_equal(kernel.filtered, 0); /* it would kill */
    kernel.tried++;
    if (kernel.error)
        return kernel.error;
    if (tid && tid == kernel.ended)
        return -ESRCH;
    if (tid && kernel.open > kernel.refuse_after)
        return -EPERM;
    *ret = (struct os_load_ring){.base = ring_words,
                                 .bytes = (((size_t)1 << order) + 1) * HY_PAGE,
                                 .tid = tid ? tid : own,
                                 .pid = getpid()};
    kernel.open++;
    kernel.bytes += ret->bytes;
    kernel.most_open = HY_MAX(kernel.most_open, kernel.open);
    kernel.most_bytes = HY_MAX(kernel.most_bytes, kernel.bytes);
    if (tid) {
        kernel.period = period;
        if (kernel.n_served < HY_ARRAY_SIZE(kernel.served))
            kernel.served[kernel.n_served++] = tid;
    }
    return 0;
}

void os_load_close(struct os_load_ring *r)
{
    kernel.open -= r->base != NULL;
    kernel.bytes -= r->base ? r->bytes : 0;
    r->base = NULL;
}

/* One sample on each page from the first one on. */
bool os_load_records(const struct os_load_ring *r, struct os_load_records *ret)
{
    assert_non_null(r->base);
    unsigned n = HY_MIN(kernel.samples, SLOTS);
    for (unsigned i = 0; i < n; i++) {
        ring_words[3 * i] = (uint64_t)RECORD << 48 | 9;
        ring_words[3 * i + 1] = (uintptr_t)BASE + i * HY_PAGE;
        ring_words[3 * i + 2] = 0;
    }
    unsigned at = 3 * n;
    if (kernel.samples > SLOTS) {
        ring_words[at++] = (uint64_t)RECORD << 48 | 2;
        ring_words[at++] = 0;
        ring_words[at++] = kernel.samples - SLOTS;
    }
    *ret = (struct os_load_records){(const uint8_t *)ring_words, 8192, at * 8, 0};
    return true;
}

void os_load_read(const struct os_load_ring *r, uint64_t tail)
{
    (void)r;
    assert_true(tail % 8 == 0);
}

unsigned os_load_waited_pct(const struct os_load_ring *r)
{
    (void)r;
    return kernel.waited_pct;
}

/* --- beside it -----------------------------------------------------------------------------------
 */

static int fine(void)
{
    return 0;
}

static void nothing(void)
{
}

static const struct sampler_source writes = {
    .name = "none", .writes = true, .open = fine, .close = nothing};
static const struct sampler_source second = {
    .name = "second", .reads = true, .open = fine, .close = nothing};
static const struct load_event event = {
    .filter = SAMPLE_ALL, .unit = 1, .period = 50021, .meaning = "of the test"};
static const struct sampler_source *const list[] = {&writes, &sampler_loads, &second, NULL};

static void begin(void)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    memset(&kernel, 0, sizeof(kernel));
    kernel.refuse_after = 1000;
    own = os_gettid();
    sampler_loads_use(&event);
    assert_int_equal(sampler_open(list, &p, 1), 0);
    assert_int_equal(sampler_add(BASE, 2 * MIB, HY_PM, false), 0);
}

static void end(void)
{
    sampler_close();
    assert_int_equal(kernel.open, 0);
}

static void pass(void)
{
    struct pass_stats stats;
    assert_int_equal(sampler_begin(UINT64_MAX), 1);
    for (unsigned r = 0; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    sampler_end(&stats);
}

/* Rings that leave most of a user's memory for samples to others. */
static uint64_t room(void)
{
    int kib = 0;
    return os_perf_mlock_kb(&kib) == 0 && kib > 0
               ? (uint64_t)kib * 1024 * (uint64_t)os_cpu_count() / 4
               : 0;
}

#define SLEEPERS 40u
static bool awake;
static int32_t sleeper[SLEEPERS];

static void *sleep_on(void *arg)
{
    __atomic_store_n((int32_t *)arg, os_gettid(), __ATOMIC_RELEASE);
    while (!__atomic_load_n(&awake, __ATOMIC_ACQUIRE))
        usleep(1000);
    return NULL;
}

static void start(pthread_t thread[SLEEPERS])
{
    awake = false;
    wait_until_alone();
    memset(sleeper, 0, sizeof(sleeper));
    for (unsigned i = 0; i < SLEEPERS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, sleep_on, &sleeper[i]), 0);
        while (!__atomic_load_n(&sleeper[i], __ATOMIC_ACQUIRE))
            usleep(1000);
    }
}

static void stop(pthread_t thread[SLEEPERS])
{
    __atomic_store_n(&awake, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < SLEEPERS; i++)
        pthread_join(thread[i], NULL);
}

/* --- tests -------------------------------------------------------------------------------------
 */

static void every_thread_has_its_turn(void **state)
{
    pthread_t thread[SLEEPERS];
    struct loads_view v;
    (void)state;
    SKIP_UNDER_QEMU("a thread of qemu is counted as well");
    begin();
    start(thread);
    for (unsigned n = 0; n < 2 * SLEEPERS; n++) {
        kernel.n_served = 0; /* room for those of one pass */
        pass();
        assert_int_equal(kernel.open, 1); /* nothing is sampled between passes */
        sampler_loads_get(&v);
        assert_true(v.threads > 0 && v.threads <= 64);
        assert_int_equal(v.threads + v.left_out, SLEEPERS);
        for (unsigned i = 0; i < kernel.n_served; i++) {
            assert_int_not_equal(kernel.served[i], own);
            for (unsigned k = 0; k < SLEEPERS; k++)
                if (sleeper[k] == kernel.served[i])
                    sleeper[k] = -1;
        }
    }
    for (unsigned i = 0; i < SLEEPERS; i++)
        assert_int_equal(sleeper[i], -1);
    if (kernel.most_open > 2)
        assert_true(kernel.most_bytes <= room() + 2 * HY_PAGE);
    stop(thread);
    end();
}

static void not_all_can_be_had(void **state)
{
    pthread_t thread[SLEEPERS];
    struct loads_view v;
    (void)state;
    SKIP_UNDER_QEMU("a thread of qemu is counted as well");
    if (room() < 6 * 5 * HY_PAGE) {
        print_message("kernel.perf_event_mlock_kb is too small here\n");
        skip();
    }
    begin();
    start(thread);
    kernel.refuse_after = 3;
    pass();
    sampler_loads_get(&v);
    assert_int_equal(v.threads, 3);
    assert_int_equal(v.left_out, SLEEPERS - 3);
    assert_int_equal(kernel.tried, 1 + 3 + 1); /* refused once, not asked again in this pass */
    kernel.refuse_after = 1000;
    kernel.ended = sleeper[0];
    for (unsigned n = 0; n < 2 * SLEEPERS; n++) {
        pass();
        sampler_loads_get(&v);
        assert_true(v.threads + v.left_out == SLEEPERS ||
                    v.threads + v.left_out == SLEEPERS - 1); /* the one that ended is no loss */
        assert_true(v.threads > 3);
    }
    stop(thread);
    end();
}

static void another_source_serves(void **state)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    (void)state;
    SKIP_UNDER_QEMU("a thread of qemu is counted as well");
    memset(&kernel, 0, sizeof(kernel));
    kernel.error = -EACCES;
    sampler_loads_use(&event);
    assert_int_equal(sampler_loads.open(), -EACCES);
    assert_int_equal(sampler_open(list, &p, 1), 0);
    assert_string_equal(sampler_source_name(false), "second");
    /* Permission may come; it is looked for when sources are opened anew. */
    kernel.error = 0;
    kernel.refuse_after = 1000;
    own = os_gettid();
    assert_int_equal(sampler_reopen(), 0);
    assert_string_equal(sampler_source_name(false), "load-samples");
    end();
}

static void it_gives_way(void **state)
{
    struct loads_view before, v;
    pthread_t thread[SLEEPERS];
    (void)state;
    start(thread);
    begin();
    sampler_loads_get(&before);
    kernel.waited_pct = 3; /* no more than chance */
    pass();
    assert_string_equal(sampler_source_name(false), "load-samples");
    kernel.waited_pct = 20;
    assert_int_equal(sampler_begin(UINT64_MAX), 1);
    assert_true(kernel.open > 1);
    sampler_round(0);
    assert_int_equal(kernel.open, 0); /* at once, not at the end of the pass */
    unsigned tried = kernel.tried;
    for (unsigned r = 1; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    assert_int_equal(kernel.tried, tried);
    sampler_loads_get(&v);
    assert_int_equal(v.given_way - before.given_way, 1);
    kernel.waited_pct = 0;
    assert_true(sampler_alive()); /* writes are watched as before */
    pass();
    assert_string_equal(sampler_source_name(false), "second");
    assert_int_equal(sampler_reopen(), 0); /* for good */
    pass();
    assert_string_equal(sampler_source_name(false), "second");
    assert_int_equal(kernel.tried, tried);
    stop(thread);
    end();
}

static void nothing_is_asked_under_a_filter(void **state)
{
    pthread_t thread[SLEEPERS];
    (void)state;
    begin();
    assert_int_equal(sampler_begin(UINT64_MAX), 1);
    start(thread); /* the next round would serve them */
    kernel.filtered = 1;
    sampler_round(0);
    assert_int_equal(kernel.open, 0);
    for (unsigned r = 1; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    pass();
    assert_string_equal(sampler_source_name(false), "second");
    kernel.filtered = -ENOENT; /* nobody tells */
    assert_int_equal(sampler_loads.open(), -EACCES);
    stop(thread);
    end();
}

static void a_flood_is_not_borne(void **state)
{
    pthread_t thread[SLEEPERS];
    struct loads_view v;
    (void)state;
    start(thread);
    begin();
    kernel.samples = 1000000; /* of each thread, in a moment */
    sampler_loads_get(&v);
    assert_int_equal(v.period, event.period);
    assert_int_equal(sampler_begin(UINT64_MAX), 1);
    assert_true(kernel.open > 1);
    sampler_round(0);
    /* The rings are opened anew, for a longer period. */
    assert_true(kernel.open > 1);
    assert_true(kernel.period >= 4 * event.period);
    sampler_loads_get(&v);
    assert_true(v.counts.lost > 0 && v.counts.samples > 0);
    kernel.samples = 0;
    for (unsigned r = 1; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    uint64_t now = v.period;
    for (unsigned n = 0; n < 64; n++)
        pass();
    sampler_loads_get(&v);
    assert_true(v.period < now && v.period >= event.period / 4); /* comes back, not below that */
    stop(thread);
    end();
}

/* A recording and the pages want the same counter: who comes second has none, and what a set that
 * was broken off held is free again. */
static void one_set_at_a_time(void **state)
{
    static struct load_rings recording;
    struct load_event core = event;
    (void)state;
    core.os.precise = 2;
    begin();
    assert_int_equal(load_rings_open(&recording, &event, 1), -EBUSY);
    assert_false(load_rings_work(&recording));
    assert_int_equal(kernel.open, 1);
    load_rings_close(&recording); /* takes nothing from who has it */
    assert_int_equal(load_rings_open(&recording, &event, 1), -EBUSY);
    assert_false(load_rings_take_counter()); /* this event takes none */
    end();
    kernel.error = -EINVAL;
    assert_int_equal(load_rings_open(&recording, &core, 1), -EINVAL);
    kernel.error = 0;
    assert_int_equal(load_rings_open(&recording, &core, 1), 0);
    assert_true(load_rings_take_counter());
    assert_int_equal(sampler_loads.open(), -EBUSY);
    assert_int_equal(load_rings_open(&recording, &core, 1), 0); /* again, by the same */
    kernel.filtered = 1;
    assert_int_equal(load_rings_open(&recording, &core, 1), -EACCES);
    assert_int_equal(kernel.open, 0);
    kernel.filtered = 0;
    /* Nothing is open: asked of what could be. */
    sampler_loads_use(&core);
    assert_true(load_rings_take_counter());
    kernel.error = -EACCES;
    assert_false(load_rings_take_counter());
    kernel.error = 0;
    assert_int_equal(kernel.open, 0);
    begin();
    end();
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    puts("skipped: the sanitizer has a thread and memory of its own, which are seen as well");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_has_its_turn),
        cmocka_unit_test(not_all_can_be_had),
        cmocka_unit_test(another_source_serves),
        cmocka_unit_test(it_gives_way),
        cmocka_unit_test(a_flood_is_not_borne),
        cmocka_unit_test(one_set_at_a_time),
        cmocka_unit_test(nothing_is_asked_under_a_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
