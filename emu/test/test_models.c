/* SPDX-License-Identifier: BSD-2-Clause
 * The pure models: caches against a plain list-based LRU, presets and settings. The media:
 * test_media.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/cache.h"
#include "model/params.h"

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

static void l1_is_lru(void **state)
{
    static struct emu_l1 c;
    static struct lru set[EMU_L1_SETS];
    unsigned x = 1, hits = 0;
    (void)state;

    for (unsigned i = 0; i < EMU_L1_SETS; i++)
        set[i].ways = EMU_L1_WAYS;
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
    return (struct emu_llc){
        .set_mask = sets - 1,
        .slot = calloc((size_t)sets * EMU_LLC_WAYS, sizeof(uint64_t)),
    };
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

/* Lines of a page that has moved: they miss again, and the others are where they were. */
static void dropped_lines_miss(void **state)
{
    static struct emu_l1 l1;
    struct emu_llc c = make_llc(512);
    const uint64_t salt = (uint64_t)3 << 42;
    (void)state;

    for (uint64_t line = 6400; line < 6400 + 192; line++) {
        (void)emu_l1_access(&l1, line, 0);
        (void)emu_l1_access(&l1, line + 4096, 0); /* the line is in an older way now, or nearly */
        (void)emu_llc_access(&c, line, salt, 1, all_dram);
        (void)emu_llc_access(&c, line, 0, 1, all_dram);
    }
    emu_l1_drop(&l1, 6464, 64);
    emu_llc_drop(&c, 6464, 64, salt);
    for (uint64_t line = 6400; line < 6400 + 192; line++) {
        bool gone = line >= 6464 && line < 6464 + 64;
        struct emu_llc_result r;
        assert_int_equal(emu_l1_access(&l1, line + 4096, 0), EMU_L1_HIT);
        assert_int_equal(emu_l1_access(&l1, line, 0), gone ? EMU_L1_MISS : EMU_L1_HIT);
        assert_true(emu_llc_access(&c, line, 0, 0, all_dram).hit);
        r = emu_llc_access(&c, line, salt, 1, all_dram);
        assert_int_equal(r.hit, !gone);
        assert_int_equal(r.write_back, gone); /* the others are dirty still */
    }
    free((void *)c.slot);
}

/* Of the reuse of an array of half the cache, which misses, one pass for each `ways` of a stream.
 */
static unsigned misses_beside_a_stream(unsigned ways)
{
    struct emu_llc c = make_llc(512), stream = {c.set_mask, EMU_LLC_WAYS - ways, c.slot};
    const uint64_t salt = (uint64_t)1 << 42, half = 4096;
    uint64_t next = 1;
    unsigned misses = 0;

    for (unsigned pass = 0; pass < 10; pass++) {
        for (uint64_t line = 1; line <= half; line++)
            misses += !emu_llc_access(&c, line, 0, 0, all_dram).hit && pass > 1;
        for (uint64_t i = 0; i < 4 * half; i++)
            (void)emu_llc_access(&stream, next++, salt, 1, all_dram);
    }
    free((void *)c.slot);
    return misses;
}

static void a_stream_with_few_ways_leaves_others_theirs(void **state)
{
    unsigned all = misses_beside_a_stream(EMU_LLC_WAYS), few = misses_beside_a_stream(1);
    struct emu_llc c = make_llc(512);
    unsigned misses = 0;

    (void)state;
    assert_int_equal(all, 8 * 4096); /* it is gone whenever it is wanted */
    assert_true(few < all / 20);
    /* What fits into its share alone is kept there, and what it had before is found, too. */
    for (uint64_t line = 1; line <= 500; line++)
        (void)emu_llc_access(&c, line, 0, 0, all_dram);
    c.first_way = EMU_LLC_WAYS - 1;
    for (unsigned pass = 0; pass < 4; pass++)
        for (uint64_t line = 1; line <= 1000; line++)
            misses += !emu_llc_access(&c, line, 0, 0, all_dram).hit;
    assert_true(misses >= 500 && misses < 2500);
    for (uint64_t line = 1; line <= 500; line++)
        assert_true(emu_llc_access(&c, line, 0, 0, all_dram).hit);
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

/* 001, section 3: 70 W for four cores at 2.4 GHz, 45 W at 1.6. */
static void clock_and_power(void **state)
{
    struct emu_params p = preset("optane"), slow = p;
    (void)state;
    emu_params_clock(&slow, EMU_MHZ);
    assert_memory_equal(&p, &slow, sizeof(p));
    emu_params_clock(&slow, EMU_LOW_MHZ);
    assert_int_equal(slow.access_ps, p.access_ps * 3 / 2);
    assert_int_equal(slow.instruction_ps, p.instruction_ps * 3 / 2);
    assert_int_equal(slow.hit_ps, p.hit_ps * 3 / 2);
    assert_int_equal(slow.medium[EMU_DRAM].read_ps, p.medium[EMU_DRAM].read_ps);
    assert_int_equal(emu_core_mw(&p, 2400), 17500);
    assert_int_equal(emu_core_mw(&p, 1600), 11250);
    assert_int_equal(emu_core_mw(&p, 2000), 14375);
    assert_int_equal(emu_core_mw(&p, 0), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(l1_is_lru),
        cmocka_unit_test(l1_tells_the_first_write_only),
        cmocka_unit_test(llc_miss_rate_is_that_of_theory),
        cmocka_unit_test(llc_writes_back_what_was_dirtied_once),
        cmocka_unit_test(dropped_lines_miss),
        cmocka_unit_test(a_stream_with_few_ways_leaves_others_theirs),
        cmocka_unit_test(llc_sizes),
        cmocka_unit_test(clock_and_power),
        cmocka_unit_test(settings_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
