/* SPDX-License-Identifier: BSD-2-Clause
 * Move lists over many passes of generated programs: their writes end up on DRAM, and little moves
 * where moving would not help. */
#include "movelist_util.h"

#include "rounds.h"

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
        cmocka_unit_test(writes_end_on_dram),
        cmocka_unit_test(noise_moves_little),
        cmocka_unit_test(a_64_gib_footprint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
