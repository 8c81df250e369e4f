/* SPDX-License-Identifier: BSD-2-Clause
 * Page histories: groups that are merged and split, and counts that always agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pages/rules/coverage.h"
#include "pages/rules/history.h"
#include "pages_util.h"
#include "rounds.h"

#define ROUNDS 8u

static struct heat_map map;
static struct page_seen seen[HISTORY_BLOCK];

static struct history new_history(uint32_t pages, enum hy_tier tier)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    struct history h;
    heat_map_init(&map, &p);
    history_init(&h, malloc(pages * sizeof(struct page_record)), NULL, pages, tier, &map);
    return h;
}

static void check(const struct history *h)
{
    const char *wrong = histories_wrong(h, 1, &map);
    if (wrong)
        fail_msg("%s", wrong);
}

/* A pass in which page i of every block does what `does` says. */
typedef struct page_seen (*does_fn)(uint32_t page, unsigned pass);

static struct pass_stats run_pass(struct history *h, does_fn does, unsigned pass)
{
    struct pass_stats stats = {0};
    for (uint32_t b = 0; b < history_blocks(h); b++) {
        struct page_set watched;
        history_watch(h, b, b * 77 + pass, &watched);
        for (uint32_t i = 0; i < HISTORY_BLOCK; i++)
            seen[i] = does(b * HISTORY_BLOCK + i, pass);
        history_record(h, b, &watched, seen, ROUNDS, &stats);
    }
    check(h);
    return stats;
}

static struct page_seen nothing(uint32_t page, unsigned pass)
{
    (void)page;
    (void)pass;
    return (struct page_seen){0, 0};
}

/* The first 100 pages written all the time, the next 100 read. */
static struct page_seen two_objects(uint32_t page, unsigned pass)
{
    (void)pass;
    if (page < 100)
        return (struct page_seen){0, 0xff};
    return page < 200 ? (struct page_seen){0xff, 0} : (struct page_seen){0, 0};
}

static void begins_cold_in_large_groups(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 300, 511, 512, 513, 1000, 4096};
    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(sizes); i++) {
        struct history h = new_history(sizes[i], HY_PM);
        check(&h);
        assert_int_equal(map.on[HY_PM], sizes[i]);
        assert_int_equal(map.movable[HY_PM][0], sizes[i]);
        assert_int_equal(history_group(&h, 0).tier, HY_PM);
        history_drop(&h);
        assert_int_equal(map.on[HY_PM], 0);
        check(&h);
        free(h.rec);
    }
}

static void learns_who_is_written(void **state)
{
    struct history h = new_history(1000, HY_PM);
    (void)state;
    for (unsigned pass = 0; pass < 8; pass++)
        run_pass(&h, two_objects, pass);
    for (uint32_t page = 0; page < 1000; page++) {
        struct page_group g = history_group(&h, page);
        if (page < 100) {
            assert_int_equal(g.passes, 0xff);
            assert_int_equal(g.heat, HEAT_MAX);
            assert_int_equal(score_band(g.score), BAND_H_HOT);
            assert_int_equal(g.reuse, REUSE_THRASHING);
        } else if (page < 200) {
            assert_int_equal(g.passes, 0);
            assert_int_equal(score_band(g.score), BAND_HOT_RD);
        } else {
            assert_int_equal(g.score, 0);
            assert_int_equal(g.reuse, REUSE_RARE);
        }
    }
    /* 0-99, 100-199, 200-999 in aligned powers of two: 64+32+4, 4+8+16+64+8, ... */
    struct pass_stats s = run_pass(&h, two_objects, 9);
    assert_true(s.groups <= 20);
    assert_int_equal(s.observed, 1000);
    assert_int_equal(s.right, 1000);
    assert_int_equal(s.changed, 0);
    assert_int_equal(s.predicted[WD_FREQ_H], 100);
    assert_int_equal(s.reuse[REUSE_RARE], 800);
    /* what is in use is watched by few */
    assert_true(s.watched <= 800 + 24);
    free(h.rec);
}

static bool swapped;

static struct page_seen phases(uint32_t page, unsigned pass)
{
    (void)pass;
    return (page / 256 % 2 == 0) == swapped ? (struct page_seen){0, 0xff}
                                            : (struct page_seen){0, 0};
}

static void follows_a_phase(void **state)
{
    struct history h = new_history(2048, HY_DRAM);
    (void)state;
    swapped = false;
    for (unsigned pass = 0; pass < 20; pass++)
        run_pass(&h, phases, pass);
    swapped = true;
    /* K_Len passes and every page is predicted as it now is. */
    for (unsigned pass = 0; pass < 3; pass++)
        run_pass(&h, phases, 20 + pass);
    struct pass_stats s = run_pass(&h, phases, 23);
    assert_int_equal(s.right, 2048);
    assert_int_equal(s.groups, 8);
    free(h.rec);
}

static void groups_follow_what_pages_do(void **state)
{
    struct history h = new_history(1024, HY_PM);
    (void)state;
    /* 16 rows of 64 that differ become one when all do the same. */
    for (unsigned pass = 0; pass < 8; pass++)
        run_pass(&h, two_objects, pass);
    assert_true(run_pass(&h, two_objects, 8).groups > 2);
    for (unsigned pass = 0; pass < 12; pass++)
        run_pass(&h, nothing, pass);
    assert_int_equal(run_pass(&h, nothing, 0).groups, 2);
    free(h.rec);
}

static void moves_keep_their_pages(void **state)
{
    struct history h = new_history(1024, HY_PM);
    (void)state;
    history_moved(&h, 13, 700, HY_DRAM);
    check(&h);
    for (uint32_t page = 0; page < 1024; page++) {
        struct page_group g = history_group(&h, page);
        bool moved = page >= 13 && page < 713;
        assert_int_equal(g.tier, moved ? HY_DRAM : HY_PM);
        assert_int_equal(g.resting, moved);
    }
    assert_int_equal(map.on[HY_DRAM], 700);
    history_refused(&h, 0, 5);
    check(&h);
    assert_true(history_group(&h, 4).resting);
    assert_int_equal(history_group(&h, 4).tier, HY_PM);
    history_refused(&h, 100, 1);
    for (unsigned pass = 0; pass < HISTORY_COOL; pass++) {
        assert_true(history_group(&h, 100).resting);
        assert_int_equal(history_group(&h, 200).resting, pass == 0); /* it only filled DRAM */
        run_pass(&h, nothing, pass);
    }
    assert_false(history_group(&h, 100).resting);
    /* beyond the end: nothing */
    history_moved(&h, 1020, 500, HY_DRAM);
    history_moved(&h, 5000, 1, HY_DRAM);
    check(&h);
    assert_int_equal(map.on[HY_DRAM], 704);
    free(h.rec);
}

/* Somebody else moved them: that is no move of ours to regret, and what they do is still known. */
static void others_move_pages(void **state)
{
    struct history h = new_history(1024, HY_PM);
    (void)state;
    for (unsigned pass = 0; pass < 8; pass++)
        run_pass(&h, two_objects, pass);
    struct page_group before = history_group(&h, 20);
    history_moved(&h, 10, 20, HY_DRAM);
    assert_true(history_group(&h, 20).moved);
    history_found(&h, 0, 40, HY_PM);
    check(&h);
    for (uint32_t page = 0; page < 40; page++) {
        struct page_group g = history_group(&h, page);
        assert_true(g.tier == HY_PM && g.resting && !g.moved);
        assert_int_equal(g.heat, before.heat);
    }
    run_pass(&h, two_objects, 8);
    assert_false(history_group(&h, 20).resting);
    history_pin(&h, 20, 1);
    check(&h);
    assert_true(history_group(&h, 20).resting && !history_group(&h, 20).moved);
    assert_false(history_group(&h, 21).resting);
    run_pass(&h, two_objects, 9);
    assert_false(history_group(&h, 20).resting);
    history_refused(&h, 20, 1);
    history_pin(&h, 20, 1); /* a longer rest stays */
    assert_true(history_group(&h, 20).moved);
    history_found(&h, 5000, 1, HY_DRAM);
    history_pin(&h, 5000, 1);
    check(&h);
    free(h.rec);
}

static void forgotten_pages_are_as_new(void **state)
{
    struct history h = new_history(3 * HISTORY_BLOCK - 7, HY_PM);
    (void)state;
    for (unsigned pass = 0; pass < 8; pass++)
        run_pass(&h, two_objects, pass);
    history_moved(&h, 0, 50, HY_DRAM);
    assert_int_equal(score_band(history_group(&h, 60).score), BAND_H_HOT);
    history_cool(&h);
    check(&h);
    for (uint32_t at = 0; at < h.pages; at += history_group(&h, at).pages) {
        assert_int_equal(history_group(&h, at).score, 0);
        assert_int_equal(history_group(&h, at).tier, at < 50 ? HY_DRAM : HY_PM);
    }
    assert_true(history_group(&h, 0).moved);
    run_pass(&h, two_objects, 0); /* and they learn again */
    run_pass(&h, two_objects, 1);
    assert_true(history_group(&h, 60).score > history_group(&h, 300).score);
    free(h.rec);
}

static void counts_keep_their_domain(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (unsigned i = 0; i < rounds(200000); i++) {
        unsigned bits = (unsigned)(random_next(&random) % 63) + 1;
        uint64_t r = random_next(&random) >> (64 - bits), w = random_next(&random) >> (64 - bits);
        uint64_t most = random_next(&random) >> (64 - bits);
        if (i % 5 == 0)
            w = 0;
        if (i % 7 == 0)
            r = 2 * w + (i & 1);
        struct page_seen s = seen_from_counts(r, w, most);
        unsigned rr = (unsigned)__builtin_popcount(s.reads);
        unsigned ww = (unsigned)__builtin_popcount(s.writes);
        if (write_domain(rr, ww) != write_domain(r, w))
            fail_msg("%lu reads, %lu writes: %u, %u", r, w, rr, ww);
        assert_int_equal(rr + ww > 0, r + w > 0);
    }
    struct page_seen s = seen_from_counts(50, 100, 400);
    assert_int_equal(__builtin_popcount(s.writes), 2);
}

/* Anything may happen in any order. */
static void random_life(void **state)
{
    uint64_t random = 7;
    (void)state;
    for (unsigned life = 0; life < rounds(30); life++) {
        uint32_t pages = (uint32_t)(random_next(&random) % 3000) + 1;
        struct history h = new_history(pages, life & 1 ? HY_PM : HY_DRAM);
        for (unsigned step = 0; step < 200; step++) {
            uint32_t first = (uint32_t)(random_next(&random) % pages);
            uint32_t n = (uint32_t)(random_next(&random) % 700);
            uint32_t block = first / HISTORY_BLOCK;
            struct page_set watched;
            struct pass_stats stats = {0};
            switch (random_next(&random) % 6) {
            case 0:
                history_moved(&h, first, n, step & 1 ? HY_PM : HY_DRAM);
                break;
            case 1:
                history_refused(&h, first, n);
                break;
            case 2:
                if (step % 3)
                    history_found(&h, first, n, step & 1 ? HY_PM : HY_DRAM);
                else
                    history_pin(&h, first, n);
                break;
            default:
                history_watch(&h, block, random, &watched);
                for (uint32_t i = 0; i < HISTORY_BLOCK; i++) {
                    uint32_t kind = (i / (1u << life % 8)) % 3;
                    bool odd = random_next(&random) % 64 == 0;
                    seen[i].writes = kind == 1 || odd ? 0xff : 0;
                    seen[i].reads = kind == 2 ? (uint8_t)random_next(&random) : 0;
                }
                history_record(&h, block, &watched, seen, ROUNDS, &stats);
                assert_true(stats.watched <= HISTORY_BLOCK && stats.observed <= HISTORY_BLOCK);
                assert_true(stats.groups >= 1 && stats.groups <= HISTORY_BLOCK);
            }
            check(&h);
        }
        assert_int_equal(map.on[HY_DRAM] + map.on[HY_PM], pages);
        free(h.rec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_cold_in_large_groups),
        cmocka_unit_test(learns_who_is_written),
        cmocka_unit_test(follows_a_phase),
        cmocka_unit_test(groups_follow_what_pages_do),
        cmocka_unit_test(moves_keep_their_pages),
        cmocka_unit_test(others_move_pages),
        cmocka_unit_test(forgotten_pages_are_as_new),
        cmocka_unit_test(counts_keep_their_domain),
        cmocka_unit_test(random_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
