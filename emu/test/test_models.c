/* SPDX-License-Identifier: BSD-2-Clause
 * The pure models: caches against a plain list-based LRU, latency, bandwidth, the
 * shared controller, PM blocks, presets and settings, pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/cache.h"
#include "model/media.h"
#include "core/pages.h"
#include "model/params.h"

#define PS_PER_US ((int64_t)1000000)

static enum emu_tier all_dram(uint64_t line)
{
    (void)line;
    return EMU_DRAM;
}

static struct emu_params preset(const char *name)
{
    struct emu_params p;
    assert_int_equal(emu_params_preset(name, &p), 0);
    return p;
}

/* A straightforward LRU set: the oracle. */
struct lru {
    uint64_t line[8];
    unsigned ways, n;
};

static int lru_hit(struct lru *s, uint64_t line)
{
    unsigned i = 0;
    int hit;
    while (i < s->n && s->line[i] != line)
        i++;
    hit = i < s->n;
    if (!hit && s->n < s->ways)
        s->n++;
    if (!hit)
        i = s->n - 1;
    memmove(s->line + 1, s->line, i * sizeof(s->line[0]));
    s->line[0] = line;
    return hit;
}

static void l1_is_two_way_lru(void **state)
{
    static struct emu_l1 c;
    static struct lru set[EMU_L1_SETS];
    unsigned x = 1, hits = 0;
    (void)state;

    for (unsigned i = 0; i < EMU_L1_SETS; i++)
        set[i].ways = 2;
    for (int i = 0; i < 200000; i++) {
        uint64_t line = 1000 + (x = x * 1103515245 + 12345) / 65536 % 1500;
        int hit = lru_hit(&set[emu_l1_set(line)], line);
        assert_int_equal(emu_l1_access(&c, line, 0) != EMU_L1_MISS, hit);
        hits += (unsigned)hit;
    }
    assert_in_range(hits, 20000, 180000); /* both outcomes were tried */
}

static void l1_tells_the_first_write_only(void **state)
{
    static struct emu_l1 c;
    (void)state;
    assert_int_equal(emu_l1_access(&c, 7, 0), EMU_L1_MISS);
    assert_int_equal(emu_l1_access(&c, 7, 1), EMU_L1_DIRTIED);
    assert_int_equal(emu_l1_access(&c, 7, 1), EMU_L1_HIT);
    assert_true(emu_l1_quick(&c, 7, 1));
    assert_int_equal(emu_l1_access(&c, 8, 1), EMU_L1_MISS);
    assert_true(emu_l1_quick(&c, 8, 1));
    assert_int_equal(emu_l1_access(&c, 9, 0), EMU_L1_MISS);
    assert_false(emu_l1_quick(&c, 9, 1));
}

static struct emu_llc make_llc(uint32_t kb)
{
    uint32_t sets = emu_llc_sets(kb);
    assert_int_not_equal(sets, 0);
    return (struct emu_llc){sets - 1, calloc((size_t)sets * EMU_LLC_WAYS, sizeof(uint64_t))};
}

/* A working set twice the cache, at random: half the accesses miss. */
static void llc_miss_rate_is_that_of_theory(void **state)
{
    static const struct {
        uint32_t kb;
        double rate;
    } cases[] = {{512, 1 - 0.5 / 32}, {2048, 1 - 2.0 / 32}, {8192, 1 - 8.0 / 32}, {16384, 0.5}};
    const uint64_t lines = 32 * 1024 * 1024 / 64;
    (void)state;

    for (unsigned k = 0; k < 4; k++) {
        struct emu_llc c = make_llc(cases[k].kb);
        uint64_t x = 88172645463325252u, misses = 0, n = 1000000;
        for (uint64_t i = 0; i < 2 * n; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            misses += !emu_llc_access(&c, 1 + x % lines, 0, 0, all_dram).hit && i >= n;
        }
        assert_true((double)misses / (double)n > cases[k].rate - 0.01);
        assert_true((double)misses / (double)n < cases[k].rate + 0.01);
        free((void *)c.slot);
    }
}

static void llc_writes_back_what_was_dirtied_once(void **state)
{
    struct emu_llc c = make_llc(512);
    unsigned back = 0;
    (void)state;
    for (int pass = 0; pass < 3; pass++)
        for (uint64_t line = 1; line <= 1000; line++)
            back += emu_llc_access(&c, line, 0, 1, all_dram).write_back;
    assert_int_equal(back, 1000); /* they fit: dirty once, whatever the passes */
    for (uint64_t line = 1; line <= 100000; line++)
        back += emu_llc_access(&c, line + 5000, 0, 1, all_dram).write_back;
    assert_int_equal(back, 101000);
    /* Another process' line with the same number is another line. */
    assert_false(emu_llc_access(&c, 105000, (uint64_t)1 << 42, 0, all_dram).hit);
    assert_true(emu_llc_access(&c, 105000, 0, 0, all_dram).hit);
    free((void *)c.slot);
}

static void llc_sizes(void **state)
{
    (void)state;
    assert_int_equal(emu_llc_sets(2048), 4096);
    assert_int_equal(emu_llc_sets(3000), 4096); /* power of two below */
    assert_int_equal(emu_llc_sets(0), 0);
    assert_int_equal(emu_llc_sets(EMU_LLC_MAX_KB + 1), 0);
}

static void latency_ratios_are_the_presets(void **state)
{
    static const struct {
        const char *name;
        double read, write;
    } want[] = {{"stt-ram", 1, 3}, {"pram", 3, 8}, {"remote-numa", 1.89, 1.89}, {"custom", 1, 1}};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct emu_params p = preset(want[i].name);
        struct emu_costs c;
        double read, write;
        emu_costs_init(&c, &p);
        read = (double)c.miss_ps[EMU_PM][EMU_MISS_DEPENDENT] /
               (double)c.miss_ps[EMU_DRAM][EMU_MISS_DEPENDENT];
        write = (double)c.writeback_ps[EMU_PM] / (double)c.writeback_ps[EMU_DRAM];
        assert_true(read > want[i].read - 0.001 && read < want[i].read + 0.001);
        assert_true(write > want[i].write - 0.001 && write < want[i].write + 0.001);
    }
}

/* `n` threads on one medium, each moving `units` in a batch of 20 us, the one with the
 * least time first, for 4 ms; other traffic of `noise_units` PM writes a batch beside
 * it. GB/s of the threads. */
static double bandwidth(const char *name, enum emu_tier t, int n, uint32_t units, bool write,
                        int noise_threads, const struct emu_batch *noise)
{
    struct emu_media *m = calloc(1, sizeof(*m));
    struct emu_params p = preset(name);
    struct emu_costs c;
    struct emu_batch b = {.cpu_ps = 5 * PS_PER_US};
    int64_t time[64] = {0}, wait, moved = 0, end = 4000 * PS_PER_US;

    emu_costs_init(&c, &p);
    b.stall_ps[t] = 15 * PS_PER_US;
    (write ? b.write_units : b.read_units)[t] = units;
    for (;;) {
        int least = 0;
        for (int i = 1; i < n + noise_threads; i++)
            if (time[i] < time[least])
                least = i;
        if (time[least] >= end)
            break;
        if (least < n)
            moved += units;
        time[least] = emu_media_settle(m, &c, time[least], least < n ? &b : noise, &wait);
        assert_true(wait >= 0);
    }
    free(m);
    return (double)moved * 64 / ((double)end / 1000);
}

static void bandwidth_saturates_at_the_presets(void **state)
{
    double one, two, four, eight, sixteen;
    (void)state;
    /* 1,000 units in 20 us: 3.2 GB/s wanted by each thread, of 12 GB/s PM or 48 DRAM. */
    one = bandwidth("pram", EMU_PM, 1, 1000, false, 0, NULL);
    two = bandwidth("pram", EMU_PM, 2, 1000, false, 0, NULL);
    four = bandwidth("pram", EMU_PM, 4, 1000, false, 0, NULL);
    eight = bandwidth("pram", EMU_PM, 8, 1000, false, 0, NULL);
    sixteen = bandwidth("pram", EMU_PM, 16, 1000, false, 0, NULL);
    assert_true(one > 2.9 && one <= 3.2);
    assert_true(two > 1.75 * one);
    assert_true(four < 3.6 * one); /* the knee of PM lies at 3 to 4 threads */
    assert_true(eight > 10 && eight < 12.1);
    assert_true(sixteen > 11 && sixteen < 12.6);
    /* DRAM is still growing where PM has long been full. */
    one = bandwidth("pram", EMU_DRAM, 1, 1000, false, 0, NULL);
    eight = bandwidth("pram", EMU_DRAM, 8, 1000, false, 0, NULL);
    assert_true(eight > 7 * one);
    /* Writes have a limit of their own. */
    assert_true(bandwidth("pram", EMU_PM, 8, 1000, true, 0, NULL) < 4.2);
}

/* Paper 004, section V: 94 -> 18 GB/s beside readers (here 73 -> 20), 68 -> 1.7 beside
 * writers (61 -> 7); PM loses 15 % at most. */
static void pm_traffic_slows_dram_not_the_reverse(void **state)
{
    struct emu_batch readers = {.cpu_ps = 5 * PS_PER_US}, writers = readers, dram = readers;
    double alone, beside;
    (void)state;

    readers.stall_ps[EMU_PM] = writers.stall_ps[EMU_PM] = dram.stall_ps[EMU_DRAM] = 15 * PS_PER_US;
    /* Ten of them fill PM, as in the paper. */
    readers.read_units[EMU_PM] = 3000;
    writers.write_units[EMU_PM] = 2000;
    dram.read_units[EMU_DRAM] = 4000;
    alone = bandwidth("optane", EMU_DRAM, 10, 4000, false, 0, NULL);
    assert_true(alone > 70 && alone < 94.5);
    beside = bandwidth("optane", EMU_DRAM, 10, 4000, false, 10, &readers);
    assert_true(beside > 14 && beside < 22);
    alone = bandwidth("optane", EMU_DRAM, 10, 4000, true, 0, NULL);
    beside = bandwidth("optane", EMU_DRAM, 10, 4000, true, 10, &writers);
    assert_true(alone > 55 && beside < 8 && beside > 0.5);
    alone = bandwidth("optane", EMU_PM, 10, 1000, false, 0, NULL);
    beside = bandwidth("optane", EMU_PM, 10, 1000, false, 10, &dram);
    assert_true(beside > 0.8 * alone);
    /* A controller of its own. */
    alone = bandwidth("cxl", EMU_DRAM, 10, 1000, false, 0, NULL);
    beside = bandwidth("cxl", EMU_DRAM, 10, 1000, false, 10, &readers);
    assert_true(beside > 0.99 * alone);
}

static void late_bookings_find_their_own_time(void **state)
{
    struct emu_media *m = calloc(1, sizeof(*m));
    (void)state;
    /* Somebody far ahead does not delay one who comes later with an earlier time. */
    assert_int_equal(emu_media_book(m, EMU_DRAM, 500 * EMU_WINDOW_PS, 3 * EMU_WINDOW_PS),
                     503 * EMU_WINDOW_PS);
    assert_int_equal(emu_media_book(m, EMU_DRAM, 0, EMU_WINDOW_PS / 2), EMU_WINDOW_PS / 2);
    /* Full windows are passed over: 500 to 502 are taken. */
    assert_int_equal(emu_media_book(m, EMU_DRAM, 500 * EMU_WINDOW_PS, EMU_WINDOW_PS),
                     504 * EMU_WINDOW_PS);
    /* The ring has gone round: the past is full, nothing is overwritten. */
    assert_true(emu_media_book(m, EMU_PM, EMU_WINDOWS * EMU_WINDOW_PS, 5) > 0);
    assert_true(emu_media_book(m, EMU_PM, 0, 5) >= EMU_WINDOW_PS);
    free(m);
}

static void random_writes_move_whole_blocks(void **state)
{
    struct emu_media *m = calloc(1, sizeof(*m));
    struct emu_params p = preset("optane");
    struct emu_costs c;
    uint32_t seq = 0, random = 0;
    (void)state;
    emu_costs_init(&c, &p);
    for (uint64_t i = 0; i < 4000; i++)
        seq += emu_media_units(m, &c, EMU_PM, 1000000 + i, true);
    for (uint64_t i = 0; i < 4000; i++)
        random += emu_media_units(m, &c, EMU_PM, i * 7919 % 1000003 * 64, true);
    assert_in_range(seq, 4000, 4004);
    assert_in_range(random, 15900, 16000);
    assert_int_equal(emu_media_units(m, &c, EMU_DRAM, 77, true), 1);
    free(m);
}

static void settings_by_name(void **state)
{
    struct emu_params p = preset("pram"), before = p;
    const char *bad = NULL, *text;
    (void)state;
    assert_int_equal(emu_params_set(&p, "pm_read_ns=300,llc_kb=4096", &bad), 0);
    assert_int_equal(p.medium[EMU_PM].read_ps, 300000);
    assert_int_equal(p.llc_kb, 4096);
    static const char *const wrong[] = {"pm_read_ns",
                                        "pm_read_ns=",
                                        "pm_read_ns=0",
                                        "pm_read_ns=-1",
                                        "pm_read_ns=1x",
                                        "what=1",
                                        "llc_kb=99999999",
                                        "=1",
                                        ",",
                                        "pm_read_ns=99999999999999999999",
                                        "pm_read_ns=300 "};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        p = before;
        text = wrong[i];
        assert_int_equal(emu_params_set(&p, text, &bad), -EINVAL);
        assert_ptr_equal(bad, text);
        assert_memory_equal(&p, &before, sizeof(p));
    }
    text = "llc_kb=4096,nonsense=3";
    assert_int_equal(emu_params_set(&p, text, &bad), -EINVAL);
    assert_string_equal(bad, "nonsense=3");
    assert_memory_equal(&p, &before, sizeof(p));
    assert_int_equal(emu_params_preset("ram", &p), -ENOENT);
    assert_true(emu_preset_count() >= 6);
}

static void pages_have_media(void **state)
{
    const uint64_t base = 0x7f0000000000u, page = 1 << EMU_PAGE_SHIFT;
    (void)state;
    assert_int_equal(emu_tier_of(base), EMU_DRAM);
    /* Across the border of two leaves (4 GiB). */
    assert_int_equal(emu_pages_set(base - page, 2 * page, EMU_PM), 0);
    assert_int_equal(emu_tier_of(base - page), EMU_PM);
    assert_int_equal(emu_tier_of(base + page - 1), EMU_PM);
    assert_int_equal(emu_tier_of(base + page), EMU_DRAM);
    assert_int_equal(emu_tier_of(base - page - 1), EMU_DRAM);
    emu_pages_move(base - page, 2 * page, base + 64 * page, 4 * page);
    assert_int_equal(emu_tier_of(base), EMU_DRAM);
    assert_int_equal(emu_tier_of(base + 67 * page), EMU_PM);
    emu_pages_default(EMU_PM);
    assert_int_equal(emu_pages_set(base + 65 * page, page, EMU_DRAM), 0);
    assert_int_equal(emu_tier_of(base + 65 * page), EMU_DRAM);
    assert_int_equal(emu_tier_of(12345), EMU_PM);
    emu_pages_clear(base + 65 * page, page);
    assert_int_equal(emu_tier_of(base + 65 * page), EMU_PM);
    emu_pages_default(EMU_DRAM);
    assert_int_equal(emu_pages_set((uint64_t)1 << 48, page, EMU_PM), -EINVAL);
    assert_int_equal(emu_pages_set(UINT64_MAX - page, page, EMU_PM), -EINVAL);
    assert_int_equal(emu_tier_of(UINT64_MAX), EMU_DRAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(l1_is_two_way_lru),
        cmocka_unit_test(l1_tells_the_first_write_only),
        cmocka_unit_test(llc_miss_rate_is_that_of_theory),
        cmocka_unit_test(llc_writes_back_what_was_dirtied_once),
        cmocka_unit_test(llc_sizes),
        cmocka_unit_test(latency_ratios_are_the_presets),
        cmocka_unit_test(bandwidth_saturates_at_the_presets),
        cmocka_unit_test(pm_traffic_slows_dram_not_the_reverse),
        cmocka_unit_test(late_bookings_find_their_own_time),
        cmocka_unit_test(random_writes_move_whole_blocks),
        cmocka_unit_test(settings_by_name),
        cmocka_unit_test(pages_have_media),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
