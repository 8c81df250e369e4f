/* SPDX-License-Identifier: BSD-2-Clause
 * Prediction from a page's history: the cases of paper 002 (section 3), and properties of
 * the scores that rank pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

#include <cmocka.h>

#include "pages/rules/predictor.h"

static void write_domain_weighs_writes_twice(void **state)
{
    static const struct {
        uint64_t reads, writes;
        bool wd;
    } cases[] = {
        {0, 0, false}, {1, 0, false},   {100, 0, false},  {0, 1, true},   {2, 1, true},
        {3, 1, false}, {100, 50, true}, {101, 50, false}, {7, 100, true}, {UINT32_MAX, 1, false},
    };
    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(cases); i++)
        assert_int_equal(write_domain(cases[i].reads, cases[i].writes), cases[i].wd);
}

/* A history as the paper draws it: the oldest pass first, 1 for write domain. */
static uint32_t passes_of(const char *drawn)
{
    uint32_t passes = 0;
    for (; *drawn; drawn++)
        passes = passes << 1 | (*drawn == '1');
    return passes;
}

static void the_papers_cases(void **state)
{
    static const struct {
        const char *passes;
        enum prediction wanted;
    } cases[] = {
        {"11111111", WD_FREQ_H}, /* case 1: intensive */
        {"11011101", WD_FREQ_H},
        {"00000000", UN_WD}, /* case 2: cold, or read */
        {"00010010", UN_WD},
        {"10101010", WD_FREQ_L}, /* case 3: write domain, not so intensive */
        {"01010101", WD_FREQ_L},
        {"00000111", WD_FREQ_L}, /* 3 of 8 by the window already */
        {"11111000", UN_WD},     /* case 4: the phase is over */
        {"11101000", UN_WD},
        {"11111100", WD_FREQ_H}, /* two passes do not prove it */
    };
    struct predictor p = predictor_of(PREDICT_WINDOW);
    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(cases); i++) {
        uint32_t passes = passes_of(cases[i].passes);
        if (predict(&p, passes) != cases[i].wanted)
            fail_msg("%s: %d", cases[i].passes, predict(&p, passes));
    }
    /* Case 4 the other way round needs a window that says no: a longer one. */
    p = predictor_of(16);
    assert_int_equal(predict(&p, passes_of("0000000000000111")), WD_FREQ_L);
    assert_int_equal(predict(&p, passes_of("0000000000001011")), UN_WD);
    p.k_len = 0; /* no Reverse */
    assert_int_equal(predict(&p, passes_of("0000000000000111")), UN_WD);
    assert_int_equal(predict(&p, passes_of("1111111111000000")), WD_FREQ_L);
}

static void prediction_properties(void **state)
{
    (void)state;
    for (unsigned w = 1; w <= PREDICT_WINDOW_MAX; w++) {
        struct predictor p = predictor_of(w);
        uint32_t all = ((uint32_t)1 << w) - 1;
        assert_true(p.freq_l <= p.freq_h && p.freq_h <= w && p.k_len <= w);
        assert_int_equal(predict(&p, 0), UN_WD);
        assert_int_equal(predict(&p, all), WD_FREQ_H);
        for (uint32_t h = 0; h <= all; h++) {
            enum prediction now = predict(&p, h);
            /* What lies before the window does not count. */
            assert_int_equal(predict(&p, h | ~all), now);
            /* One more write-domain pass never lowers the prediction. */
            for (unsigned bit = 0; bit < w; bit++)
                assert_true(predict(&p, h | (uint32_t)1 << bit) >= now);
        }
    }
}

static void heat_follows_the_rounds(void **state)
{
    (void)state;
    for (unsigned rounds = 1; rounds <= 8; rounds++) {
        assert_int_equal(heat_level(0, rounds), 0);
        assert_int_equal(heat_level(rounds, rounds), HEAT_MAX);
        assert_int_equal(heat_level(rounds + 5, rounds), HEAT_MAX);
        for (unsigned n = 1; n < rounds; n++) {
            assert_true(heat_level(n, rounds) >= 1);
            assert_true(heat_level(n, rounds) <= heat_level(n + 1, rounds));
            /* hot is what most rounds saw */
            assert_int_equal(heat_level(n, rounds) >= HEAT_HOT, 2 * n >= rounds);
        }
    }
    assert_int_equal(heat_level(3, 0), 0);
    for (unsigned from = 0; from <= HEAT_MAX; from++)
        for (unsigned to = 0; to <= HEAT_MAX; to++) {
            unsigned heat = from;
            for (int i = 0; i < 5; i++)
                heat = heat_smooth(heat, to);
            assert_int_equal(heat, to); /* five passes and it is there */
        }
    /* In use from now on: hot in the second pass. Once in four passes: never. */
    assert_true(heat_smooth(heat_smooth(0, HEAT_MAX), HEAT_MAX) >= HEAT_HOT);
    unsigned heat = 0;
    for (int i = 0; i < 100; i++) {
        heat = heat_smooth(heat, i % 4 ? 0 : HEAT_MAX);
        assert_true(heat < HEAT_HOT);
    }
}

static void reuse_classes(void **state)
{
    (void)state;
    assert_true(reuse_stable(0xff, 8));
    assert_true(reuse_stable(0x55, 8));
    assert_false(reuse_stable(0x49 & 0x3f, 8)); /* too few to tell */
    assert_false(reuse_stable(0x8f, 8));        /* 1 1 1 4: unstable */
    assert_false(reuse_stable(0, 8));
    assert_int_equal(reuse_class(0, true), REUSE_RARE);
    assert_int_equal(reuse_class(1, true), REUSE_RARE);
    assert_int_equal(reuse_class(7, true), REUSE_THRASHING);
    assert_int_equal(reuse_class(7, false), REUSE_FREQUENT);
    assert_int_equal(reuse_class(2, true), REUSE_FREQUENT);
}

static void scores_rank_as_the_paper_does(void **state)
{
    struct predictor p = predictor_of(PREDICT_WINDOW);
    (void)state;
    for (uint32_t a = 0; a < 256; a++)
        for (unsigned ha = 0; ha <= HEAT_MAX; ha++) {
            unsigned sa = page_score(&p, a, ha);
            enum prediction pa = predict(&p, a);
            assert_true(sa < SCORES);
            if (ha < HEAT_MAX)
                assert_true(page_score(&p, a, ha + 1) > sa);
            /* where it belongs */
            if (pa == WD_FREQ_H || ha >= HEAT_HOT)
                assert_int_equal(score_tier(sa), HY_DRAM);
            if (pa == UN_WD && ha == 0)
                assert_int_equal(score_tier(sa), HY_PM);
            if (pa == WD_FREQ_L && ha > 0 && ha < HEAT_HOT)
                assert_int_equal(score_tier(sa), HY_TIERS);
            for (uint32_t b = 0; b < 256; b += 7)
                for (unsigned hb = 0; hb <= HEAT_MAX; hb++) {
                    enum prediction pb = predict(&p, b);
                    unsigned sb = page_score(&p, b, hb);
                    /* FREQ_H before FREQ_L; hot written pages before hot read ones */
                    if (pa > pb && pb != UN_WD)
                        assert_true(sa > sb);
                    if (pa > pb && ha >= HEAT_HOT)
                        assert_true(sa > sb);
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_domain_weighs_writes_twice),
        cmocka_unit_test(the_papers_cases),
        cmocka_unit_test(prediction_properties),
        cmocka_unit_test(heat_follows_the_rounds),
        cmocka_unit_test(reuse_classes),
        cmocka_unit_test(scores_rank_as_the_paper_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
