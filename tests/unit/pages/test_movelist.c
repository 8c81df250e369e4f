/* SPDX-License-Identifier: BSD-2-Clause
 * Move lists: budgets are kept whatever the histories hold, and what is worth most moves first.
 * test_movelist_programs.c has generated programs over many passes. */
#include "movelist_util.h"

#include "pages_util.h"
#include "rounds.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_written_pages_come_first),
        cmocka_unit_test(free_dram_is_filled_before_anything_is_known),
        cmocka_unit_test(reads_may_be_held_and_shed),
        cmocka_unit_test(plan_properties),
        cmocka_unit_test(list_properties),
        cmocka_unit_test(the_hand_goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
