/* SPDX-License-Identifier: BSD-2-Clause
 * Rings of samples made by hand: every record once, across the end of the ring, whatever else
 * lies between; what makes no sense ends in time and touches nothing outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "pages/rules/sample_ring.h"

#define SIZE 4096u

static uint8_t *memory; /* exactly as large as the ring, so that valgrind and sanitizers see */
static uint64_t head, tail;
static uint64_t heard, sum_address, sum_source;

static void put(const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memory[(head + i) % SIZE] = ((const uint8_t *)data)[i];
    head += bytes;
}

static void put_record(uint32_t type, const uint64_t *words, unsigned n)
{
    struct perf_event_header h = {.type = type, .size = (uint16_t)(sizeof(h) + n * 8)};
    put(&h, sizeof(h));
    put(words, n * 8);
}

static void put_sample(uint64_t address, uint64_t source)
{
    put_record(PERF_RECORD_SAMPLE, (uint64_t[]){address, source}, 2);
}

static void hear(void *ctx, uint64_t address, uint64_t source)
{
    assert_ptr_equal(ctx, &heard);
    heard++;
    sum_address += address;
    sum_source += source;
}

static struct sample_counts take(void)
{
    struct sample_ring r = {.data = memory, .size = SIZE, .head = head, .tail = tail};
    struct sample_counts c = {0};
    heard = sum_address = sum_source = 0;
    tail = sample_ring_read(&r, hear, &heard, &c);
    assert_int_equal(c.samples, heard);
    return c;
}

static int setup(void **state)
{
    (void)state;
    memory = calloc(1, SIZE);
    head = tail = 0;
    return memory ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

static void every_sample_once(void **state)
{
    uint64_t wrapped = 0;
    (void)state;
    /* 24 bytes do not divide the ring: records lie across its end in each way. */
    for (uint64_t n = 1; n < 2000; n++) {
        wrapped += head % SIZE + 24 > SIZE;
        put_sample(0x1000 * n, n);
        struct sample_counts c = take();
        assert_int_equal(c.samples, 1);
        assert_int_equal(c.broken, 0);
        assert_int_equal(sum_address, 0x1000 * n);
        assert_int_equal(sum_source, n);
        assert_int_equal(tail, head);
    }
    assert_true(wrapped > 5);
    uint64_t sum = 0;
    for (uint64_t n = 0; n < SIZE / 24; n++, sum += n)
        put_sample(n + 1, 0);
    assert_int_equal(take().samples, SIZE / 24);
    assert_int_equal(sum_address, sum);
    assert_int_equal(take().samples, 0);
}

static void what_lies_between(void **state)
{
    (void)state;
    head = tail = SIZE - 16;                              /* the first one across the end */
    put_record(PERF_RECORD_LOST, (uint64_t[]){77, 5}, 2); /* id, number */
    put_sample(1, 0);
    put_record(PERF_RECORD_THROTTLE, (uint64_t[]){1, 2, 3}, 3);
    put_record(PERF_RECORD_UNTHROTTLE, (uint64_t[]){1, 2, 3}, 3);
    put_record(13, (uint64_t[]){7}, 1); /* LOST_SAMPLES */
    put_record(PERF_RECORD_COMM, (uint64_t[]){1, 2, 3, 4, 5}, 5);
    put_record(PERF_RECORD_SAMPLE, (uint64_t[]){9}, 1); /* too short: not ours */
    put_record(1234, NULL, 0);
    put_sample(2, 0);
    struct sample_counts c = take();
    assert_int_equal(c.samples, 2);
    assert_int_equal(sum_address, 3);
    assert_int_equal(c.lost, 12);
    assert_int_equal(c.throttled, 1);
    assert_int_equal(c.broken, 0);
    assert_int_equal(tail, head);
}

static void nonsense_is_left_out(void **state)
{
    struct perf_event_header none = {0}, odd = {.type = PERF_RECORD_SAMPLE, .size = 27},
                             longer = {.type = PERF_RECORD_SAMPLE, .size = 40};
    const struct perf_event_header *wrong[] = {&none, &odd, &longer};
    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(wrong); i++) {
        put_sample(5, 0);
        put(wrong[i], sizeof(none));
        put((uint64_t[]){0, 0}, 16);
        struct sample_counts c = take();
        assert_int_equal(c.samples, 1);
        assert_int_equal(c.broken, 1);
        assert_int_equal(tail, head); /* what comes next is read again */
        put_sample(6, 0);
        assert_int_equal(take().samples, 1);
    }
    head = tail + SIZE + 8; /* more than there can be */
    assert_int_equal(take().broken, 1);
    assert_int_equal(tail, head);
    head += 24;
    tail += 4; /* not at a record */
    assert_int_equal(take().broken, 1);
    tail = head = 1u << 20;
    put(&none, 4); /* half a header: not written yet */
    assert_int_equal(take().broken, 0);
    assert_int_equal(tail, 1u << 20);
}

static void anything_at_all(void **state)
{
    uint64_t x = 88172645463325252u, samples = 0, broken = 0;
    (void)state;
    for (unsigned run = 0; run < 20000; run++) {
        for (unsigned i = 0; i < SIZE; i += 8) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            uint64_t word = x;
            /* Mostly sensible headers, or nothing would ever be read. */
            if (x % 3)
                word = (uint64_t)(8 * (1 + x % 5)) << 48 | (x % 16);
            memcpy(memory + i, &word, 8);
        }
        tail = x % 8 ? x % SIZE * 8 : x;
        head = tail + (x >> 20) % (SIZE + 64);
        uint64_t to = head, from = tail;
        struct sample_counts c = take();
        assert_true(tail == to || (tail >= from && to - tail < 8));
        samples += c.samples;
        broken += c.broken;
    }
    assert_true(samples > 1000 && broken > 1000);
}

static uint64_t source(uint64_t op, uint64_t level, uint64_t number)
{
    union perf_mem_data_src s = {.mem_op = op, .mem_lvl = level, .mem_lvl_num = number};
    return s.val;
}

static void what_samples_tell(void **state)
{
    const uint64_t load = PERF_MEM_OP_LOAD, store = PERF_MEM_OP_STORE, hit = PERF_MEM_LVL_HIT;
    const uint64_t at = 0x7f0000001008;
    const struct {
        uint64_t source;
        enum sample_kind kind, any, stored;
    } table[] = {
        {source(load, hit | PERF_MEM_LVL_L1, 1), SAMPLE_NONE, SAMPLE_READ},
        {source(load, hit | PERF_MEM_LVL_L3, 3), SAMPLE_NONE, SAMPLE_READ},
        {source(load, hit | PERF_MEM_LVL_LOC_RAM, PERF_MEM_LVLNUM_RAM), SAMPLE_READ, SAMPLE_READ},
        {source(load, hit | PERF_MEM_LVL_REM_RAM1, 15), SAMPLE_READ, SAMPLE_READ},
        {source(load, hit | PERF_MEM_LVL_REM_RAM2, 15), SAMPLE_READ, SAMPLE_READ},
        {source(load, PERF_MEM_LVL_MISS | PERF_MEM_LVL_LOC_RAM, 15), SAMPLE_NONE, SAMPLE_READ},
        {source(load, 0, PERF_MEM_LVLNUM_PMEM), SAMPLE_READ, SAMPLE_READ},
        {source(load, 0, 9 /* CXL */), SAMPLE_READ, SAMPLE_READ},
        {source(load, 0, PERF_MEM_LVLNUM_ANY_CACHE), SAMPLE_NONE, SAMPLE_READ},
        {source(store, hit | PERF_MEM_LVL_LOC_RAM, 15), SAMPLE_STORE, SAMPLE_STORE, SAMPLE_STORE},
        /* Intel tells of L1 alone; AMD of L1 and L2, and nothing of who answered. */
        {source(store, hit | PERF_MEM_LVL_L1, 15), SAMPLE_NONE, SAMPLE_STORE, SAMPLE_NONE},
        {source(store, PERF_MEM_LVL_MISS | PERF_MEM_LVL_L1, 15), SAMPLE_NONE, SAMPLE_STORE,
         SAMPLE_STORE},
        {source(store, hit | PERF_MEM_LVL_L2, 2), SAMPLE_NONE, SAMPLE_STORE, SAMPLE_NONE},
        {source(store, hit | PERF_MEM_LVL_LFB, 12), SAMPLE_NONE, SAMPLE_STORE, SAMPLE_NONE},
        {source(store, PERF_MEM_LVL_NA, 15), SAMPLE_NONE, SAMPLE_STORE, SAMPLE_STORE},
        {source(store, 0, 0), SAMPLE_NONE, SAMPLE_STORE, SAMPLE_NONE},
        {source(PERF_MEM_OP_NA, PERF_MEM_LVL_NA, 15), SAMPLE_NONE, SAMPLE_READ},
        {0, SAMPLE_NONE, SAMPLE_READ},
    };
    (void)state;
    for (unsigned i = 0; i < HY_ARRAY_SIZE(table); i++) {
        const uint64_t s = table[i].source;
        assert_int_equal(sample_kind_of(at, s, SAMPLE_FROM_MEMORY), table[i].kind);
        assert_int_equal(sample_kind_of(at, s, SAMPLE_ALL), table[i].any);
        assert_int_equal(sample_kind_of(at, s, SAMPLE_MISSED_STORES), table[i].stored);
        assert_int_equal(sample_kind_of(0, s, SAMPLE_ALL), SAMPLE_NONE);
        assert_int_equal(sample_kind_of(0xffff888000000000, s, SAMPLE_ALL), SAMPLE_NONE);
    }
}

static void the_period_finds_the_rate(void **state)
{
    const uint64_t second = 1000000000;
    (void)state;
    /* 50 million misses a second, then 1 million, then none, then 200 million. */
    const uint64_t events[] = {50000000, 1000000, 0, 200000000};
    for (unsigned u = 0; u < 2; u++) {
        uint64_t period = u ? 1 << 19 : 50021, least = period / 4;
        for (unsigned i = 0; i < HY_ARRAY_SIZE(events); i++) {
            for (unsigned pass = 0; pass < 8; pass++) {
                period = sample_period(period, events[i] / period, second, u ? 16 : 1, least);
                assert_true(u ? period % 16 == 0 : period % 2 == 1);
                assert_true(period >= least);
                assert_true(events[i] / period <= 2 * SAMPLE_RATE); /* too fast: at once */
            }
            if (events[i] / least >= SAMPLE_RATE)
                assert_true(events[i] / period >= SAMPLE_RATE / 4);
        }
        assert_int_equal(sample_period(period, 1000, 0, 1, least), period);
        assert_int_equal(sample_period(7, UINT64_MAX, 1, 0, 1), 7); /* fixed */
        assert_true(sample_period(period, UINT64_MAX, 1, 1, least) <= (uint64_t)1 << 33);
    }
}

static void each_pass_has_another_period(void **state)
{
    uint64_t least = UINT64_MAX, most = 0;
    (void)state;
    for (uint64_t r = 1; r < 4000; r++) {
        uint64_t odd = sample_other_period(50021, r * 2654435761u, 1);
        uint64_t even = sample_other_period(1 << 19, r * 2654435761u, 16);
        assert_true(odd % 2 == 1 && even % 16 == 0);
        assert_in_range(odd, 50021, 50021 * 9 / 8 + 1);
        assert_in_range(even, 1 << 19, (1 << 19) * 9 / 8);
        least = HY_MIN(least, odd);
        most = HY_MAX(most, odd);
    }
    assert_true(least < 50100 && most > 56000);
    assert_int_equal(sample_other_period(1, 12345, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_once, setup, teardown),
        cmocka_unit_test_setup_teardown(what_lies_between, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(anything_at_all, setup, teardown),
        cmocka_unit_test(what_samples_tell),
        cmocka_unit_test(the_period_finds_the_rate),
        cmocka_unit_test(each_pass_has_another_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
