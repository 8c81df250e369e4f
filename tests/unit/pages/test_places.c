/* SPDX-License-Identifier: BSD-2-Clause
 * Where pages really are: a kernel of the test's own is asked, and what others moved is found,
 * a slice of a large footprint at a time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pages/rules/coverage.h"
#include "pages/rules/foreign.h"
#include "pages/sampler.h"

#define MIB     (1ul << 20)
#define BASE    ((char *)0x10000000)
#define PAGES   65536u
#define FOUND   1024u
#define FOREVER 1000 /* calls */

/* --- the kernel, and a source that sees nothing ------------------------------------------ */

static int8_t on[PAGES];
static int fail;
static uint64_t calls, answers;

static uint64_t number(const void *page)
{
    return (uint64_t)((const char *)page - BASE) / HY_PAGE;
}

static int where(void *arg, void *const *page, unsigned n, int8_t *ret)
{
    assert_ptr_equal(arg, &calls);
    assert_true(n > 0 && n <= HISTORY_BLOCK);
    calls++;
    answers += n;
    for (unsigned i = 0; i < n; i++) {
        assert_true(number(page[i]) < PAGES);
        ret[i] = on[number(page[i])];
    }
    return fail;
}

static int open_it(void)
{
    return 0;
}

static void close_it(void)
{
}

static const struct sampler_source blind = {
    .name = "blind", .writes = true, .open = open_it, .close = close_it};

static void begin(size_t dram_pages, size_t pm_pages)
{
    const struct sampler_source *list[] = {&blind, NULL};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    assert_int_equal(sampler_open(list, &p, 1), 0);
    fail = 0;
    calls = answers = 0;
    memset(on, HY_DRAM, dram_pages);
    memset(on + dram_pages, HY_PM, pm_pages);
    if (dram_pages)
        assert_int_equal(sampler_add(BASE, dram_pages * HY_PAGE, HY_DRAM, false), 0);
    if (pm_pages)
        assert_int_equal(sampler_add(BASE + dram_pages * HY_PAGE, pm_pages * HY_PAGE, HY_PM, false),
                         0);
}

static struct sampler_found found[FOUND];

static unsigned look(uint64_t budget)
{
    uint64_t asked, before = answers;
    unsigned n = sampler_places(budget, where, &calls, found, FOUND, &asked);
    assert_int_equal(asked, answers - before);
    assert_true(n <= FOUND);
    return n;
}

static bool agrees(uint32_t pages)
{
    for (uint32_t i = 0; i < pages; i++)
        if (on[i] >= 0 && !sampler_all_on(BASE + i * HY_PAGE, HY_PAGE, (enum hy_tier)on[i]))
            return false;
    return true;
}

/* --- tests --------------------------------------------------------------------------------- */

static void what_others_moved_is_found(void **state)
{
    (void)state;
    begin(1000, 1000);
    assert_int_equal(look(8192), 0);
    assert_int_equal(answers, 2000);
    memset(on + 10, HY_PM, 100);
    memset(on + 1500, HY_DRAM, 7);
    on[50] = -1; /* not in memory: where it was */
    unsigned n = look(8192);
    assert_int_equal(n, 3);
    assert_ptr_equal(found[0].base, BASE + 10 * HY_PAGE);
    assert_int_equal(found[0].bytes, 40 * HY_PAGE);
    assert_int_equal(found[1].bytes, 59 * HY_PAGE);
    assert_true(found[0].on == HY_PM && !found[0].home);
    assert_ptr_equal(found[2].base, BASE + 1500 * HY_PAGE);
    assert_true(found[2].on == HY_DRAM && !found[2].home && found[2].bytes == 7 * HY_PAGE);
    assert_int_equal(sampler_extra_dram(), 7 - 99);
    assert_true(agrees(2000));
    assert_int_equal(look(8192), 0); /* told once */
    memset(on + 10, HY_DRAM, 100);
    assert_int_equal(look(8192), 2);
    assert_true(found[0].home && found[0].on == HY_DRAM);
    assert_int_equal(sampler_extra_dram(), 7);
    sampler_close();
}

/* Everything is found sooner or later, at a bounded price a time; what moved as a whole soon. */
static void a_slice_at_a_time(void **state)
{
    const uint64_t budget = 512;
    uint64_t random = 1, most = 0;
    unsigned passes;
    (void)state;
    begin(PAGES / 2, PAGES / 2);
    for (unsigned i = 0; i < 50; i++)
        on[random_next(&random) % PAGES] ^= 1; /* single ones */
    for (passes = 0; !agrees(PAGES) && passes < FOREVER; passes++) {
        uint64_t before = answers;
        look(budget);
        most = HY_MAX(most, answers - before);
    }
    assert_true(passes < FOREVER);
    assert_true(most <= OTHERS_MOST + HISTORY_BLOCK);
    for (most = 0; most < PAGES;) { /* nothing is elsewhere: no more than that */
        uint64_t before = answers;
        assert_int_equal(look(budget), 0);
        assert_true(answers - before <= budget + HISTORY_BLOCK);
        most += (answers - before) * FOREIGN_SPOT;
    }
    memset(on, HY_PM, PAGES / 2); /* all of a tier: soon */
    for (passes = 0; !agrees(PAGES) && passes < FOREVER; passes++)
        look(budget);
    assert_true(passes <= PAGES / OTHERS_MOST + PAGES / FOREIGN_SPOT / budget + 1);
    sampler_close();
}

static void scattered_pages_fit_in_the_list(void **state)
{
    unsigned passes;
    (void)state;
    begin(0, 4096);
    for (unsigned i = 0; i < 4096; i += 2)
        on[i] = HY_DRAM;
    for (passes = 0; !agrees(4096) && passes < FOREVER; passes++)
        assert_true(look(8192) <= FOUND);
    assert_true(passes >= 2 && passes <= 6);
    assert_int_equal(sampler_extra_dram(), 2048);
    sampler_close();
}

static void a_kernel_that_does_not_answer(void **state)
{
    (void)state;
    begin(100, 0);
    memset(on, HY_PM, 100);
    fail = -EPERM;
    assert_int_equal(look(8192), 0);
    assert_true(sampler_all_on(BASE, 100 * HY_PAGE, HY_DRAM));
    fail = 0;
    assert_int_equal(look(8192), 1);
    sampler_close();
    uint64_t asked;
    assert_int_equal(sampler_places(10, where, &calls, found, FOUND, &asked), 0); /* closed */
    sampler_pin(BASE, HY_PAGE);
}

static void ranges_change_meanwhile(void **state)
{
    uint64_t random = 9;
    (void)state;
    begin(0, 0);
    for (unsigned i = 0; i < PAGES; i++)
        on[i] = (int8_t)(random_next(&random) % 3) - 1;
    for (unsigned i = 0; i < 2000; i++) {
        size_t first = random_next(&random) % 8000, n = random_next(&random) % 900 + 1;
        if (random_next(&random) % 3)
            assert_int_equal(sampler_add(BASE + first * HY_PAGE, n * HY_PAGE, i & 1, i & 2), 0);
        else
            sampler_remove(BASE + first * HY_PAGE, n * HY_PAGE);
        look(random_next(&random) % 2000);
    }
    for (unsigned i = 0; i < 40; i++)
        look(8192);
    uint64_t bands[HY_TIERS][BANDS], sum[HY_TIERS], is[HY_TIERS] = {0};
    sampler_totals(bands, sum);
    for (unsigned i = 0; i < 9000; i++)
        for (unsigned t = 0; t < HY_TIERS; t++)
            is[t] +=
                on[i] == (int)t && sampler_all_on(BASE + i * HY_PAGE, HY_PAGE, (enum hy_tier)t);
    assert_true(sum[HY_DRAM] >= is[HY_DRAM] && sum[HY_PM] >= is[HY_PM]);
    for (unsigned i = 0; i < 9000; i++) /* watched pages that are in memory are where they are */
        assert_false(on[i] >= 0 && sampler_all_on(BASE + i * HY_PAGE, HY_PAGE, !on[i]));
    sampler_close();
}

/* Held pages do not move, in this pass. */
static void held_pages_stay(void **state)
{
    struct move_limits l = {.dram_pages = 4096, .moves = 4096, .fill_cold = true};
    struct page_move list[8];
    struct pass_stats stats;
    (void)state;
    begin(0, 1024);
    sampler_pin(BASE - 8 * HY_PAGE, 16 * HY_PAGE); /* a part is not watched */
    sampler_pin(BASE + 512 * HY_PAGE, 512 * HY_PAGE);
    assert_int_equal(sampler_moves(&l, 1 << 20, list, 8, NULL), 1);
    assert_ptr_equal(list[0].base, BASE + 8 * HY_PAGE);
    assert_int_equal(list[0].bytes, 504 * HY_PAGE);
    sampler_begin(UINT64_MAX);
    for (unsigned r = 0; r < HISTORY_ROUNDS; r++)
        sampler_round(r);
    sampler_end(&stats);
    assert_true(sampler_moves(&l, 1 << 20, list, 8, NULL) >= 2); /* the next one: again free */
    sampler_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_moved_is_found),
        cmocka_unit_test(a_slice_at_a_time),
        cmocka_unit_test(scattered_pages_fit_in_the_list),
        cmocka_unit_test(a_kernel_that_does_not_answer),
        cmocka_unit_test(ranges_change_meanwhile),
        cmocka_unit_test(held_pages_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
