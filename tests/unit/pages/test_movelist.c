/* SPDX-License-Identifier: BSD-2-Clause
 * Move lists: budgets are kept whatever the histories hold, what is worth most moves
 * first, and on generated programs the writes end up on DRAM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pages/rules/coverage.h"
#include "pages/rules/movelist.h"
#include "pages_util.h"
#include "rounds.h"

#define MOVES 4096

static struct heat_map map;
static struct move list[MOVES];

static void new_map(void)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    heat_map_init(&map, &p);
}

static struct history new_history(uint32_t pages, enum hy_tier tier)
{
    struct history h;
    history_init(&h, malloc((size_t)pages * sizeof(struct page_record)), NULL, pages, tier, &map);
    return h;
}

/* One pass of eight rounds over a whole range: page i is written and read so often. */
typedef void (*does_fn)(uint32_t page, void *ctx, struct page_seen *ret);

static void run_pass(struct history *h, uint64_t *random, does_fn does, void *ctx)
{
    static struct page_seen seen[HISTORY_BLOCK];
    struct pass_stats stats = {0};
    for (uint32_t b = 0; b < history_blocks(h); b++) {
        struct page_set watched;
        history_watch(h, b, random_next(random), &watched);
        for (uint32_t i = 0; i < HISTORY_BLOCK; i++) {
            seen[i] = (struct page_seen){0, 0};
            if (page_set_has(&watched, i))
                does(b * HISTORY_BLOCK + i, ctx, &seen[i]);
        }
        history_record(h, b, &watched, seen, HISTORY_ROUNDS, &stats);
    }
}

/* Do as the list says; DRAM must never be over the budget on the way. */
static void apply(struct history *h, unsigned n, uint64_t budget)
{
    for (unsigned i = 0; i < n; i++) {
        history_moved(&h[list[i].range], list[i].first, list[i].pages, list[i].to);
        if (list[i].to == HY_DRAM && map.on[HY_DRAM] > budget)
            fail_msg("%lu pages on DRAM, allowed %lu", map.on[HY_DRAM], budget);
    }
}

static void from_to(uint32_t page, void *ctx, struct page_seen *ret)
{
    const uint32_t *range = ctx;
    if (page >= range[0] && page < range[1])
        ret->writes = 0xff;
}

static void the_written_pages_come_first(void **state)
{
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = 300,
                            .moves = 10000,
                            .margin = MOVE_MARGIN};
    struct move_plan plan;
    struct move_hand hand = {0};
    uint64_t random = 1;
    uint32_t hot[2] = {1000, 1300};
    (void)state;
    new_map();
    struct history h = new_history(4000, HY_PM);
    for (int i = 0; i < 8; i++)
        run_pass(&h, &random, from_to, hot);
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 300);
    assert_int_equal(plan.down, 0);
    unsigned n = move_list(&h, 1, &plan, &hand, 1 << 20, list, MOVES, NULL);
    assert_int_equal(n, 1); /* neighbours are one move */
    assert_int_equal(list[0].first, 1000);
    assert_int_equal(list[0].pages, 300);
    assert_int_equal(list[0].to, HY_DRAM);
    apply(&h, n, 300);
    /* Nothing more to do, and nothing is done. */
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up + plan.down, 0);
    /* The hot set moves: the old one goes, the new one comes, at most 300 are there. */
    hot[0] = 2000, hot[1] = 2300;
    for (int i = 0; i < 12; i++) {
        run_pass(&h, &random, from_to, hot);
        move_plan(&map, &l, &plan);
        n = move_list(&h, 1, &plan, &hand, 1 << 20, list, MOVES, NULL);
        apply(&h, n, 300);
    }
    for (uint32_t page = 0; page < 4000; page++)
        assert_int_equal(history_group(&h, page).tier,
                         page >= 2000 && page < 2300 ? HY_DRAM : HY_PM);
    free(h.rec);
}

static void free_dram_is_filled_before_anything_is_known(void **state)
{
    struct move_limits l = {.dram_pages = 300, .moves = 250, .margin = MOVE_MARGIN};
    struct move_plan plan;
    struct move_hand hand = {0};
    (void)state;
    new_map();
    struct history h = new_history(4000, HY_PM);
    move_plan(&map, &l, &plan); /* nobody has been seen at these pages */
    assert_int_equal(plan.up, 0);
    l.fill_cold = true;
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 250);
    apply(&h, move_list(&h, 1, &plan, &hand, 1 << 20, list, MOVES, NULL), 300);
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 50); /* what is left of the room */
    apply(&h, move_list(&h, 1, &plan, &hand, 1 << 20, list, MOVES, NULL), 300);
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up + plan.down, 0); /* no place is made for them */
    assert_int_equal(map.on[HY_DRAM], 300);
    /* That they are not used is no move to regret. */
    for (uint32_t page = 0; page < 4000; page++)
        assert_false(history_group(&h, page).moved);
    free(h.rec);
}

static void reads_may_be_held_and_shed(void **state)
{
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = 1000,
                            .moves = 10000,
                            .margin = MOVE_MARGIN};
    struct move_plan plan;
    (void)state;
    new_map();
    map.on[HY_DRAM] = 500;
    map.on[HY_PM] = 500;
    map.movable[HY_PM][BAND_HOT_RD * SCORE_BAND + 10] = 300;
    map.movable[HY_PM][BAND_H_HOT * SCORE_BAND + 10] = 100;
    map.movable[HY_DRAM][BAND_HOT_RD * SCORE_BAND + 12] = 200;
    map.movable[HY_DRAM][BAND_L_HOT * SCORE_BAND + 8] = 100;
    map.movable[HY_DRAM][0] = 200;
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 400);
    l.no_reads_up = true;
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 100);
    l.shed = 250;
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.up, 0);
    assert_int_equal(plan.take[HY_DRAM][BAND_HOT_RD * SCORE_BAND + 12], 200);
    assert_int_equal(plan.take[HY_DRAM][BAND_L_HOT * SCORE_BAND + 8], 50);
    assert_int_equal(plan.take[HY_DRAM][0], 0);
    /* Eager: what is cold goes without need. */
    l = (struct move_limits){.swaps = UINT64_MAX,
                             .clear = UINT64_MAX,
                             .dram_pages = 1000,
                             .moves = 10000,
                             .margin = MOVE_MARGIN,
                             .eager = true};
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.down, 200);
    /* The budget shrank: the coldest go, whether eager or not. */
    l = (struct move_limits){.swaps = UINT64_MAX,
                             .clear = UINT64_MAX,
                             .dram_pages = 450,
                             .moves = 10000,
                             .margin = MOVE_MARGIN};
    move_plan(&map, &l, &plan);
    assert_true(plan.down >= 50 && plan.take[HY_DRAM][0] == plan.down);
    assert_true(500 + plan.up - plan.down <= 450);
    l.moves = 30; /* no faster than that */
    move_plan(&map, &l, &plan);
    assert_int_equal(plan.down, 30);
}

static void plan_properties(void **state)
{
    uint64_t random = 3;
    (void)state;
    for (unsigned i = 0; i < rounds(3000); i++) {
        struct move_plan plan;
        struct move_limits l = {.dram_pages = random_next(&random) % 5000,
                                .moves = random_next(&random) % 3000,
                                .swaps = random_next(&random) % 3 * 100,
                                .clear = random_next(&random) % 3 * 200,
                                .margin = (uint8_t)(random_next(&random) % 20),
                                .eager = random_next(&random) % 2,
                                .no_reads_up = random_next(&random) % 2,
                                .shed = i % 4 ? 0 : random_next(&random) % 500};
        new_map();
        for (unsigned t = 0; t < HY_TIERS; t++)
            for (unsigned s = 0; s < SCORES; s++) {
                map.movable[t][s] = random_next(&random) % 8 ? 0 : random_next(&random) % 300;
                map.on[t] += map.movable[t][s];
            }
        map.on[HY_DRAM] += random_next(&random) % 200; /* resting ones */
        move_plan(&map, &l, &plan);
        uint64_t sum[HY_TIERS] = {0};
        int lowest_up = -1, highest_down = -1;
        for (unsigned t = 0; t < HY_TIERS; t++)
            for (int s = 0; s < (int)SCORES; s++) {
                assert_true(plan.take[t][s] <= map.movable[t][s]);
                sum[t] += plan.take[t][s];
                if (plan.take[t][s] && t == HY_PM && lowest_up < 0)
                    lowest_up = s;
                if (plan.take[t][s] && t == HY_DRAM)
                    highest_down = s;
            }
        assert_int_equal(sum[HY_PM], plan.up);
        assert_int_equal(sum[HY_DRAM], plan.down);
        assert_true(plan.up + plan.down <= l.moves);
        uint64_t after = map.on[HY_DRAM] + plan.up - plan.down;
        assert_true(after <= HY_MAX(l.dram_pages, map.on[HY_DRAM]));
        /* Nobody changes places with somebody who is as good. */
        if (l.shed == 0 && map.on[HY_DRAM] <= l.dram_pages && lowest_up >= 0 && highest_down >= 0)
            assert_true(highest_down + l.margin <= (int)SCORES);
        /* Pages that are seen at times take free DRAM, never that of others. */
        bool room = map.on[HY_DRAM] < l.dram_pages;
        assert_true(lowest_up < 0 || lowest_up >= (room ? 2 : (int)(BAND_L_WARM * SCORE_BAND)));
        if (l.shed)
            assert_int_equal(plan.up, 0);
        else if (map.on[HY_DRAM] <= l.dram_pages)
            assert_true(plan.down <= l.swaps + l.clear);
    }
}

/* Histories, budgets, rates and visits at random: the list stays within all of them. */
static void list_properties(void **state)
{
    uint64_t random = 5;
    (void)state;
    for (unsigned life = 0; life < 20; life++) {
        struct history h[3];
        struct move_hand hand = {0};
        uint32_t hot[2];
        new_map();
        for (unsigned r = 0; r < 3; r++)
            h[r] =
                new_history((uint32_t)(random_next(&random) % 2500) + 1, r == 1 ? HY_DRAM : HY_PM);
        uint64_t all = map.on[0] + map.on[1];
        for (unsigned step = 0; step < 60; step++) {
            struct move_plan plan;
            struct move_limits l = {.swaps = UINT64_MAX,
                                    .clear = UINT64_MAX,
                                    .dram_pages = random_next(&random) % all,
                                    .moves = random_next(&random) % 2000,
                                    .margin = MOVE_MARGIN,
                                    .eager = step & 1};
            hot[0] = (uint32_t)(random_next(&random) % 2000);
            hot[1] = hot[0] + (uint32_t)(random_next(&random) % 500);
            for (unsigned r = 0; r < 3; r++)
                run_pass(&h[r], &random, from_to, hot);
            move_plan(&map, &l, &plan);
            struct move_plan planned = plan;
            unsigned cap = (unsigned)(random_next(&random) % 40);
            unsigned n =
                move_list(h, 3, &plan, &hand, random_next(&random) % 3000, list, cap, NULL);
            uint64_t moved = 0, seen_up = 0;
            assert_true(n <= cap);
            for (unsigned i = 0; i < n; i++) {
                const struct move *m = &list[i];
                assert_true(m->range < 3 && m->pages > 0 && m->pages <= MOVE_PAGES);
                assert_true(m->first + m->pages <= h[m->range].pages);
                moved += m->pages;
                seen_up += m->to == HY_DRAM;
                assert_true(m->to == HY_DRAM || seen_up == 0); /* to PM first */
                for (uint32_t p = m->first; p < m->first + m->pages; p++) {
                    struct page_group g = history_group(&h[m->range], p);
                    assert_true(g.tier != m->to && !g.resting);
                }
            }
            assert_true(moved <= planned.up + planned.down && moved <= l.moves);
            apply(h, n, HY_MAX(l.dram_pages, map.on[HY_DRAM]));
            const char *wrong = histories_wrong(h, 3, &map);
            if (wrong)
                fail_msg("%s", wrong);
        }
        for (unsigned r = 0; r < 3; r++)
            free(h[r].rec);
    }
}

/* Every page comes by in turn, though a sweep is short. */
static void the_hand_goes_round(void **state)
{
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = 3000,
                            .moves = 1000000,
                            .margin = MOVE_MARGIN};
    struct move_plan plan;
    struct move_hand hand = {0};
    uint64_t random = 1, moved = 0;
    (void)state;
    new_map();
    struct history h[2] = {new_history(1500, HY_PM), new_history(1500, HY_PM)};
    uint32_t hot[2] = {0, 1500};
    for (int i = 0; i < 8; i++)
        for (int r = 0; r < 2; r++)
            run_pass(&h[r], &random, from_to, hot);
    for (int i = 0; i < 200 && moved < 3000; i++) {
        move_plan(&map, &l, &plan);
        unsigned n = move_list(h, 2, &plan, &hand, 1, list, MOVES, NULL);
        for (unsigned k = 0; k < n; k++)
            moved += list[k].pages;
        apply(h, n, 3000);
    }
    assert_int_equal(moved, 3000);
    free(h[0].rec);
    free(h[1].rec);
}

/* --- generated programs ---------------------------------------------------------- */

#define FOOTPRINT 8192u

struct program {
    const char *name;
    uint64_t random;
    unsigned pass, phase, zipf_shift;
    uint32_t hot; /* pages */
    uint32_t place[FOOTPRINT];
};

static bool is_hot(const struct program *p, uint32_t page)
{
    return p->place[(page + p->phase * p->hot) % FOOTPRINT] < p->hot;
}

static void does(uint32_t page, void *ctx, struct page_seen *ret)
{
    struct program *p = ctx;
    unsigned chance = is_hot(p, page) ? 230 : 2; /* of 256, each round */
    for (unsigned i = 0; i < HISTORY_ROUNDS; i++) {
        if (random_next(&p->random) % 256 < chance)
            ret->writes |= (uint8_t)(1u << i);
        if (random_next(&p->random) % 256 < chance / 2)
            ret->reads |= (uint8_t)(1u << i);
    }
}

/* Share of the hot pages on DRAM, after the first passes. */
static double served(struct program *p, unsigned passes_a_phase, uint64_t *ret_moves)
{
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = p->hot,
                            .moves = 4 * p->hot,
                            .margin = MOVE_MARGIN};
    struct move_hand hand = {0};
    uint64_t random = 9, hit = 0, all = 0, moves = 0;
    new_map();
    struct history h = new_history(FOOTPRINT, HY_PM);
    for (p->pass = 0; p->pass < 120; p->pass++) {
        struct move_plan plan;
        p->phase = passes_a_phase ? p->pass / passes_a_phase : 0;
        if (p->pass >= 10)
            for (uint32_t i = 0; i < FOOTPRINT; i++)
                if (is_hot(p, i)) {
                    hit += history_group(&h, i).tier == HY_DRAM;
                    all++;
                }
        run_pass(&h, &random, does, p);
        move_plan(&map, &l, &plan);
        unsigned n = move_list(&h, 1, &plan, &hand, 1 << 20, list, MOVES, NULL);
        for (unsigned i = 0; i < n; i++)
            moves += list[i].pages;
        apply(&h, n, l.dram_pages);
    }
    free(h.rec);
    *ret_moves = moves;
    return (double)hit / (double)all;
}

static void writes_end_on_dram(void **state)
{
    static const struct {
        const char *name;
        unsigned ratio, phase;
        bool scattered;
        double least;
    } cases[] = {
        {"static, contiguous", 10, 0, false, 0.99}, {"static, scattered", 10, 0, true, 0.95},
        {"static, scattered", 2, 0, true, 0.95},    {"phases of 40 passes", 10, 40, false, 0.85},
        {"phases of 40 passes", 5, 40, true, 0.85}, {"phases of 20 passes", 5, 20, false, 0.75},
    };
    (void)state;
    /* Under valgrind a static and a changing one. */
    for (size_t c = 0; c < HY_ARRAY_SIZE(cases); c += rounds(10) == 10 ? 1 : 3) {
        static struct program p;
        p = (struct program){.random = 11, .hot = FOOTPRINT / cases[c].ratio};
        for (uint32_t i = 0; i < FOOTPRINT; i++)
            p.place[i] = i;
        for (uint32_t i = FOOTPRINT; cases[c].scattered && i-- > 1;) {
            uint32_t k = (uint32_t)(random_next(&p.random) % (i + 1)), keep = p.place[i];
            p.place[i] = p.place[k];
            p.place[k] = keep;
        }
        uint64_t moves;
        double share = served(&p, cases[c].phase, &moves);
        printf("%-22s DRAM 1/%-3u %5.1f%% of hot pages on DRAM, %lu moves\n", cases[c].name,
               cases[c].ratio, 100 * share, moves);
        if (share < cases[c].least)
            fail_msg("%s: %.3f", cases[c].name, share);
    }
}

/* A program without a pattern: moving would not help, so little is moved. */
static void noise(uint32_t page, void *ctx, struct page_seen *ret)
{
    (void)page;
    ret->writes = (uint8_t)random_next(ctx);
}

static void noise_moves_little(void **state)
{
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = FOOTPRINT / 10,
                            .moves = FOOTPRINT,
                            .margin = MOVE_MARGIN};
    struct move_hand hand = {0};
    uint64_t random = 13, moves = 0;
    (void)state;
    new_map();
    struct history h = new_history(FOOTPRINT, HY_PM);
    for (unsigned pass = 0; pass < 100; pass++) {
        struct move_plan plan;
        run_pass(&h, &random, noise, &random);
        move_plan(&map, &l, &plan);
        unsigned n = move_list(&h, 1, &plan, &hand, 1 << 20, list, MOVES, NULL);
        for (unsigned i = 0; i < n && pass >= 10; i++)
            moves += list[i].pages;
        apply(&h, n, l.dram_pages);
    }
    printf("noise: %.2f%% of the footprint moved a pass\n", 100.0 * (double)moves / 90 / FOOTPRINT);
    assert_true(moves < 90 * FOOTPRINT / 100); /* below 1% of it a pass */
    free(h.rec);
}

/* 64 GiB, a few GiB of it hot: a pass looks at a bounded share, and in some passes the hot
 * part is found and moved. */
static void a_64_gib_footprint(void **state)
{
    const uint32_t pages = (uint32_t)(rounds(64) * HY_GIB / HY_PAGE);
    uint32_t hot[2] = {3 * (pages / 8), 3 * (pages / 8) + pages / 16};
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = pages / 10,
                            .moves = 400000,
                            .margin = MOVE_MARGIN};
    struct move_hand hand = {0};
    struct coverage c;
    static struct page_seen seen[HISTORY_BLOCK];
    uint64_t random = 1, most_watched = 0, moved = 0;
    (void)state;
    coverage_init(&c, 5);
    new_map();
    struct history h = new_history(pages, HY_PM);
    for (unsigned pass = 0; pass < 40; pass++) {
        struct pass_stats stats = {0};
        struct move_plan plan;
        uint64_t blocks = history_blocks(&h), n = coverage_share(blocks, 10000, 1000000000);
        for (uint64_t i = 0; i < n; i++) {
            uint32_t b = (uint32_t)coverage_next(&c, blocks), base = b * HISTORY_BLOCK;
            struct page_set watched;
            history_watch(&h, b, random_next(&random), &watched);
            for (uint32_t k = 0; k < HISTORY_BLOCK; k++)
                seen[k].writes = base + k >= hot[0] && base + k < hot[1] ? 0xff : 0;
            history_record(&h, b, &watched, seen, HISTORY_ROUNDS, &stats);
        }
        assert_true(stats.observed <= (uint64_t)pages * 15 / 100);
        most_watched = HY_MAX(most_watched, stats.watched);
        move_plan(&map, &l, &plan);
        unsigned k = move_list(&h, 1, &plan, &hand, 100000, list, MOVES, NULL);
        for (unsigned i = 0; i < k; i++)
            moved += list[i].pages;
        assert_true(k <= MOVES);
        apply(&h, k, l.dram_pages);
    }
    uint64_t there = 0;
    for (uint32_t page = hot[0]; page < hot[1]; page += 512)
        there += history_group(&h, page).tier == HY_DRAM;
    printf("%u GiB: %lu pages moved, %.1f%% of the hot ones on DRAM, at most %.1f%% watched\n",
           rounds(64), moved, 100.0 * (double)there / ((hot[1] - hot[0]) / 512.0),
           100.0 * (double)most_watched / pages);
    assert_true(there * 512 * 100 >= (uint64_t)(hot[1] - hot[0]) * 95);
    free(h.rec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_written_pages_come_first),
        cmocka_unit_test(free_dram_is_filled_before_anything_is_known),
        cmocka_unit_test(reads_may_be_held_and_shed),
        cmocka_unit_test(plan_properties),
        cmocka_unit_test(list_properties),
        cmocka_unit_test(the_hand_goes_round),
        cmocka_unit_test(writes_end_on_dram),
        cmocka_unit_test(noise_moves_little),
        cmocka_unit_test(a_64_gib_footprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
