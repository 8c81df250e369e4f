/* SPDX-License-Identifier: BSD-2-Clause
 * Algorithm 1 (papers/004, section III-B): its cases as a table, and what must
 * hold on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "place/rules/placement.h"

#define UNK HY_CLASS_UNKNOWN
#define CPU HY_CLASS_CPU
#define BW  HY_CLASS_BANDWIDTH
#define LAT HY_CLASS_LATENCY

struct row {
    const char *what;
    uint64_t budget;
    unsigned n;
    struct place_app app[4]; /* the first one asks */
    uint64_t bytes;
    enum hy_tier tier;
    uint64_t wish;
};

/* clang-format off */
static const struct row rows[] = {
    {"alone, room", 10, 1, {{CPU, 0, 0, 0}}, 10, HY_DRAM, 0},
    {"alone, one byte too much", 10, 1, {{CPU, 0, 0, 0}}, 11, HY_PM, 0},
    {"latency-sensitive with room", 10, 1, {{LAT, 4, 0, 0}}, 6, HY_DRAM, 0},
    {"unknown with room", 10, 1, {{UNK, 4, 0, 0}}, 6, HY_DRAM, 0},
    {"unknown without room", 10, 2, {{UNK, 0, 0, 0}, {CPU, 10, 0, 0}}, 1, HY_PM, 0},
    {"CPU-bound without room", 10, 2, {{CPU, 0, 0, 0}, {CPU, 10, 0, 0}}, 1, HY_PM, 0},
    {"bandwidth, CPU-bound holds it", 10, 2, {{BW, 0, 0, 0}, {CPU, 10, 0, 0}}, 8, HY_PM, 8},
    {"bandwidth, exactly as much", 10, 2, {{BW, 0, 0, 0}, {CPU, 10, 0, 0}}, 10, HY_PM, 10},
    {"bandwidth, CPU-bound holds less", 10, 2, {{BW, 6, 0, 0}, {CPU, 4, 0, 0}}, 5, HY_PM, 0},
    {"two CPU-bound hold it together",
     10, 3, {{BW, 0, 0, 0}, {CPU, 5, 0, 0}, {CPU, 5, 0, 0}}, 8, HY_PM, 8},
    {"only bandwidth-sensitive ones hold", 10, 2, {{BW, 0, 0, 0}, {BW, 10, 0, 0}}, 1, HY_PM, 0},
    {"only latency-sensitive ones hold", 10, 2, {{BW, 0, 0, 0}, {LAT, 10, 0, 0}}, 1, HY_PM, 0},
    {"only unknown ones hold", 10, 2, {{BW, 0, 0, 0}, {UNK, 10, 0, 0}}, 1, HY_PM, 0},
    {"latency, CPU-bound holds it", 10, 2, {{LAT, 0, 0, 0}, {CPU, 10, 0, 0}}, 8, HY_PM, 8},
    {"latency after bandwidth",
     10, 3, {{LAT, 0, 0, 0}, {CPU, 10, 0, 0}, {BW, 0, 0, 4}}, 7, HY_PM, 0},
    {"latency beside bandwidth",
     10, 3, {{LAT, 0, 0, 0}, {CPU, 10, 0, 0}, {BW, 0, 0, 4}}, 6, HY_PM, 6},
    {"bandwidth before latency",
     10, 3, {{BW, 0, 0, 0}, {CPU, 10, 0, 0}, {LAT, 0, 0, 4}}, 10, HY_PM, 10},
    {"our own wishes count too", 10, 2, {{BW, 0, 6, 6}, {CPU, 10, 0, 0}}, 5, HY_PM, 0},
    {"what one gave up is not taken back", 10, 2, {{CPU, 4, 6, 0}, {BW, 0, 6, 6}}, 1, HY_PM, 0},
    {"nor by a latency-sensitive one", 10, 2, {{LAT, 4, 0, 0}, {BW, 0, 6, 6}}, 1, HY_PM, 0},
    {"but by who wished for it", 10, 2, {{BW, 0, 6, 6}, {CPU, 4, 6, 0}}, 6, HY_DRAM, 0},
    {"a CPU-bound one's wish holds nobody up",
     10, 2, {{CPU, 4, 0, 0}, {CPU, 0, 6, 6}}, 6, HY_DRAM, 0},
    {"who writes to PM goes before who does not",
     10, 3, {{BW, 0, 0, 0, 3000}, {CPU, 10, 0, 0}, {BW, 0, 9, 9, 1000}}, 10, HY_PM, 10},
    {"and what it wishes for is not free to that one",
     10, 2, {{BW, 0, 0, 0, 1000}, {BW, 0, 9, 9, 3000}}, 2, HY_PM, 0},
    {"one that writes about as much does not",
     10, 3, {{BW, 0, 0, 0, 3000}, {CPU, 10, 0, 0}, {BW, 0, 9, 9, 1500}}, 2, HY_PM, 0},
    {"nor one with hardly a writer",
     10, 3, {{BW, 0, 0, 0, 999}, {CPU, 10, 0, 0}, {BW, 0, 9, 9, 0}}, 2, HY_PM, 0},
    {"nor before a more sensitive one",
     10, 3, {{LAT, 0, 0, 0, 8000}, {CPU, 10, 0, 0}, {BW, 0, 9, 9, 0}}, 2, HY_PM, 0},
    {"a CPU-bound writer is not heard all the same",
     10, 2, {{CPU, 0, 0, 0, 0}, {CPU, 0, 9, 9, 8000}}, 10, HY_DRAM, 0},
    {"budget lowered below what is held", 10, 2, {{CPU, 0, 0, 0}, {BW, 30, 0, 0}}, 1, HY_PM, 0},
    {"nothing asked of a full machine", 10, 1, {{CPU, 10, 0, 0}}, 0, HY_DRAM, 0},
};
/* clang-format on */

static struct place_machine m;

static void test_cases_of_the_algorithm(void **state)
{
    (void)state;
    for (size_t i = 0; i < HY_ARRAY_SIZE(rows); i++) {
        const struct row *r = &rows[i];
        m.dram_budget = r->budget;
        m.n_apps = r->n;
        memcpy(m.app, r->app, sizeof(r->app));
        struct place_decision d = placement_decide(&m, 0, r->bytes);
        if (d.tier != r->tier || d.wish_bytes != r->wish)
            fail_msg("%s: %s, wish %llu", r->what, hy_tier_name(d.tier),
                     (unsigned long long)d.wish_bytes);
    }
}

/* Who is CPU-bound gives way to those who gain more than it loses, moves counted. */
static void test_who_gains_too_little_is_not_heard(void **state)
{
    const struct place_app holder = {.cls = CPU,
                                     .dram_bytes = 1000 * HY_PAGE,
                                     .slowdown = 1400,
                                     .run_ns = 10000000,
                                     .move_ns = 2000};
    const struct place_app wisher = {.cls = BW,
                                     .pm_bytes = 1000 * HY_PAGE,
                                     .wish_bytes = 600 * HY_PAGE,
                                     .slowdown = 2400,
                                     .run_ns = 10000000,
                                     .move_ns = 1000};

    (void)state;
    m = (struct place_machine){.dram_budget = 1000 * HY_PAGE, .n_apps = 2};
    m.app[0] = holder;
    m.app[1] = wisher;
    /* A page saves it .1 % of its time, in 5 ms 5 us; the moves take 2.5. Half of the DRAM is the
     * holder's all the same: with it, it takes 1.2, and with 30 pages less 1 % more. */
    assert_int_equal(placement_asked_of(&m, 0, 0), 530 * HY_PAGE);
    assert_int_equal(placement_wish(&m, 1, HY_PAGE), HY_PAGE);
    m.app[1].run_ns = 4000000;
    assert_int_equal(placement_asked_of(&m, 0, 0), 0);
    assert_int_equal(placement_wish(&m, 1, HY_PAGE), 0);
    assert_int_equal(placement_decide(&m, 1, HY_PAGE).wish_bytes, 0);
    m.app[0].slowdown = 0; /* nothing is known of it but its class */
    assert_int_equal(placement_asked_of(&m, 0, 0), 600 * HY_PAGE);
    m.app[0] = holder;
    m.app[1] = wisher;
    m.app[1].slowdown = 1350; /* it would lose less */
    m.app[1].move_ns = m.app[0].move_ns = 0;
    assert_int_equal(placement_asked_of(&m, 0, 0), 0);
    m.app[1].pm_bytes /= 2; /* but not by the page */
    assert_int_equal(placement_asked_of(&m, 0, 0), 530 * HY_PAGE);
}

/* Whatever somebody tells of himself, and of however many processes of his group. */
static void test_who_lies_gets_an_equal_part(void **state)
{
    (void)state;
    m = (struct place_machine){.dram_budget = 1000 * HY_PAGE, .n_apps = 8};
    m.app[0] = (struct place_app){
        .cls = CPU, .dram_bytes = 1000 * HY_PAGE, .slowdown = 1400, .run_ns = 1000000};
    for (unsigned i = 1; i < m.n_apps; i++)
        m.app[i] = (struct place_app){.cls = BW,
                                      .pm_bytes = 1000 * HY_PAGE,
                                      .wish_bytes = 1000 * HY_PAGE,
                                      .writers = UINT32_MAX,
                                      .slowdown = UINT32_MAX,
                                      .run_ns = INT64_MAX,
                                      .group = 5};
    assert_int_equal(placement_asked_of(&m, 0, 0), 530 * HY_PAGE);
    m.app[0].dram_bytes = 470 * HY_PAGE; /* done: it is not asked again */
    m.app[0].pm_bytes = 530 * HY_PAGE;
    assert_int_equal(placement_asked_of(&m, 0, 0), 0);
    assert_int_equal(placement_wish(&m, 1, HY_PAGE), 0);
    m.app[0].slowdown = 1010; /* it loses nothing worth a word */
    assert_int_equal(placement_asked_of(&m, 0, 0), 470 * HY_PAGE);
    /* A wish for more than it has told of does not make a page dear. */
    m.n_apps = 2;
    m.app[0].slowdown = 1400;
    m.app[0].dram_bytes = 1000 * HY_PAGE;
    m.app[0].pm_bytes = 0;
    m.app[1] = (struct place_app){.cls = BW,
                                  .pm_bytes = HY_PAGE,
                                  .wish_bytes = 1000 * HY_PAGE,
                                  .slowdown = 1300,
                                  .run_ns = INT64_MAX};
    assert_int_equal(placement_asked_of(&m, 0, 0), 0);
}

static void test_shares_of_what_is_asked(void **state)
{
    (void)state;
    m = (struct place_machine){.dram_budget = 90, .n_apps = 5};
    m.app[0] = (struct place_app){CPU, 30, 0, 50}; /* its wish is nobody's business */
    m.app[1] = (struct place_app){BW, 10, 0, 20};
    m.app[2] = (struct place_app){CPU, 10, 0, 0};
    m.app[3] = (struct place_app){UNK, 40, 0, 7};
    m.app[4] = (struct place_app){LAT, 0, 0, 4};
    assert_int_equal(placement_asked_of(&m, 0, UINT64_MAX), 18);
    assert_int_equal(placement_asked_of(&m, 2, UINT64_MAX), 6);
    for (unsigned other = 1; other < 7; other += 2)
        assert_int_equal(placement_asked_of(&m, other, UINT64_MAX), 0);
    for (unsigned i = 0; i < 7; i++) /* for what the two hold */
        assert_int_equal(placement_may_ask(&m, i), i == 1 || i == 4);
    m.dram_budget = 94; /* nobody is asked for what is free */
    assert_int_equal(placement_asked_of(&m, 0, UINT64_MAX), 15);
    assert_int_equal(placement_asked_of(&m, 0, 0), 18); /* strangers have taken that */
    m.dram_budget = 114;
    assert_int_equal(placement_asked_of(&m, 0, UINT64_MAX) + placement_asked_of(&m, 2, UINT64_MAX),
                     0);
    m.app[1].wish_bytes = 1000; /* all that they have, not more */
    assert_int_equal(placement_asked_of(&m, 0, UINT64_MAX), 30);
    assert_int_equal(placement_asked_of(&m, 2, UINT64_MAX), 10);
}

static void test_strangers_and_wrong_counts(void **state)
{
    (void)state;
    memset(&m, 0xff, sizeof(m)); /* every number at its limit, no class known */
    assert_int_equal(placement_decide(&m, 0, 1).tier, HY_PM);
    assert_int_equal(placement_decide(&m, UINT32_MAX, UINT64_MAX).tier, HY_PM);
    assert_int_equal(placement_asked_of(&m, UINT32_MAX, UINT64_MAX), 0);
    m = (struct place_machine){.dram_budget = 5};
    assert_int_equal(placement_decide(&m, 0, 5).tier, HY_DRAM); /* first of all, not listed */
    assert_int_equal(placement_decide(&m, 0, 6).tier, HY_PM);
    assert_int_equal(placement_decide(&m, 0, 6).wish_bytes, 0);
}

/* --- any machine -------------------------------------------------------- */

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 16) % below;
}

/* Sizes of all magnitudes, and zeros. */
static uint64_t draw_bytes(void)
{
    return draw(4) == 0 ? 0 : draw((uint64_t)1 << (1 + draw(44)));
}

static void draw_machine(void)
{
    m.n_apps = 1 + (unsigned)draw(draw(8) == 0 ? PLACE_MAX_APPS : 6);
    uint64_t used = 0;
    for (unsigned i = 0; i < m.n_apps; i++) {
        m.app[i] = (struct place_app){(enum hy_class)draw(HY_CLASS_MAX), draw_bytes(), draw_bytes(),
                                      draw_bytes(), (uint32_t)draw(9000)};
        used += m.app[i].dram_bytes;
    }
    m.dram_budget = draw(3) == 0 ? draw_bytes() : used + draw_bytes();
}

static uint64_t total(bool only_cpu, bool wishes)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < m.n_apps; i++) {
        if (wishes)
            sum += m.app[i].cls == BW || m.app[i].cls == LAT ? m.app[i].wish_bytes : 0;
        else if (!only_cpu || m.app[i].cls == CPU)
            sum += m.app[i].dram_bytes;
    }
    return sum;
}

static void check_one_machine(void)
{
    unsigned self = (unsigned)draw(m.n_apps);
    uint64_t bytes = draw_bytes(), asked = 0;
    enum hy_class was = m.app[self].cls;
    struct place_decision d = placement_decide(&m, self, bytes);

    if (d.tier == HY_DRAM && bytes > 0)
        assert_true(total(false, false) + bytes <= m.dram_budget); /* never over the budget */
    assert_true(d.wish_bytes <= total(true, false)); /* never more than can be given up */
    assert_true(d.tier == HY_PM || d.wish_bytes == 0);
    if (was == CPU || was == UNK)
        assert_int_equal(d.wish_bytes, 0); /* displaces nobody */

    for (unsigned i = 0; i < m.n_apps; i++) {
        uint64_t share = placement_asked_of(&m, i, UINT64_MAX);
        assert_true(share <= (m.app[i].cls == CPU ? m.app[i].dram_bytes : 0));
        asked += share;
    }
    uint64_t wished = total(false, true), used = total(false, false);
    uint64_t left = m.dram_budget - HY_MIN(used, m.dram_budget);
    assert_int_equal(asked, HY_MIN(wished - HY_MIN(left, wished), total(true, false)));

    /* Monotone: less is granted where more was, and a larger budget takes nothing away. */
    if (d.tier == HY_DRAM) {
        assert_int_equal(placement_decide(&m, self, bytes / 2).tier, HY_DRAM);
        m.dram_budget += 1 + draw_bytes();
        assert_int_equal(placement_decide(&m, self, bytes).tier, HY_DRAM);
    }
    /* A more sensitive program fares no worse in the same place. */
    static const enum hy_class order[] = {CPU, LAT, BW};
    int best = 0;
    for (size_t i = 0; i < HY_ARRAY_SIZE(order); i++) {
        m.app[self].dram_bytes = m.app[self].wish_bytes = 0;
        m.app[self].cls = order[i];
        d = placement_decide(&m, self, bytes);
        int rank = d.tier == HY_DRAM ? 2 : d.wish_bytes > 0 ? 1 : 0;
        assert_true(rank >= best);
        best = rank;
    }
    m.app[self].cls = was;
}

static void test_what_holds_on_any_machine(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        seed = i * 0x9e3779b97f4a7c15u;
        draw_machine();
        check_one_machine();
    }
}

/* Of two that wish for the same, the one that writes to PM gets all that it would like; without its
 * writes they are alike. */
static void test_writers_come_first(void **state)
{
    (void)state;
    for (uint32_t writers = 0; writers <= 4000; writers += 2000) {
        m = (struct place_machine){.dram_budget = 100, .n_apps = 3};
        m.app[0] = (struct place_app){CPU, 100, 0, 0, 0};
        m.app[1] = (struct place_app){BW, 0, 80, 80, 0};
        m.app[2] = (struct place_app){BW, 0, 60, 0, writers};
        assert_int_equal(placement_wish(&m, 2, 60), writers ? 60 : 20);
        m.app[2].wish_bytes = 60;
        assert_int_equal(placement_ahead(&m, 1), writers ? 60 : 0);
        assert_int_equal(placement_ahead(&m, 2), 0);
        assert_int_equal(placement_wish(&m, 1, 80), 40);
        m.app[0].dram_bytes = 30; /* 70 are free */
        assert_int_equal(placement_free(&m, 1), writers ? 10 : 70);
        assert_int_equal(placement_free(&m, 2), 70);
    }
}

/* Newcomers, wishes and honest holders: everybody does what he is told, round
 * after round. Nothing runs over the budget, and the bandwidth-sensitive end up
 * with the DRAM that the CPU-bound had. */
static void test_a_machine_settles(void **state)
{
    (void)state;
    m = (struct place_machine){.dram_budget = 1000, .n_apps = 4};
    m.app[0] = (struct place_app){CPU, 700, 0, 0};
    m.app[1] = (struct place_app){CPU, 300, 0, 0};
    m.app[2] = (struct place_app){BW, 0, 0, 0};
    m.app[3] = (struct place_app){LAT, 0, 0, 0};
    for (int round = 0; round < 100; round++) {
        for (unsigned i = 2; i < 4; i++) {
            struct place_decision d = placement_decide(&m, i, 50);
            struct place_app *a = &m.app[i];
            if (d.tier == HY_DRAM && a->dram_bytes < 500) {
                a->dram_bytes += 50;
                a->wish_bytes -= HY_MIN(a->wish_bytes, 50u);
            } else if (a->dram_bytes + a->wish_bytes < 500) {
                a->wish_bytes += d.wish_bytes;
            }
        }
        for (unsigned i = 0; i < 2; i++) {
            uint64_t give = HY_MIN(placement_asked_of(&m, i, UINT64_MAX), 40u);
            m.app[i].dram_bytes -= give;
            m.app[i].pm_bytes += give;
            if (placement_decide(&m, i, 10).tier == HY_DRAM)
                m.app[i].dram_bytes += 10;
        }
        assert_true(total(false, false) <= m.dram_budget);
    }
    assert_int_equal(m.app[2].dram_bytes, 500);
    assert_int_equal(m.app[3].dram_bytes, 500);
    assert_int_equal(total(true, false), 0);
}

/* Alone, all of it, whatever it has claimed so far. */
static void test_what_one_can_have(void **state)
{
    struct place_machine one = {.dram_budget = 10, .n_apps = 1, .app = {{BW, 4, 0, 0}}};
    (void)state;
    assert_int_equal(placement_share(&one, 0, 0), 10);
    assert_int_equal(placement_share(&one, 0, 3), 7);
    assert_int_equal(placement_share(&one, 0, 9), 6);
    assert_int_equal(placement_share(&one, 1, 0), 6); /* a stranger: what is free */
    struct place_machine two = {
        .dram_budget = 10, .n_apps = 2, .app = {{CPU, 4, 0, 0}, {BW, 3, 5, 2}}};
    assert_int_equal(placement_share(&two, 0, 2), 3); /* the other's wish is not free */
    assert_int_equal(placement_share(&two, 1, 0), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_of_the_algorithm),
        cmocka_unit_test(test_shares_of_what_is_asked),
        cmocka_unit_test(test_who_gains_too_little_is_not_heard),
        cmocka_unit_test(test_who_lies_gets_an_equal_part),
        cmocka_unit_test(test_strangers_and_wrong_counts),
        cmocka_unit_test(test_what_holds_on_any_machine),
        cmocka_unit_test(test_writers_come_first),
        cmocka_unit_test(test_a_machine_settles),
        cmocka_unit_test(test_what_one_can_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
