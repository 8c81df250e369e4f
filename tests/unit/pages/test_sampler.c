/* SPDX-License-Identifier: BSD-2-Clause
 * The sampler: recorded histories replayed through its contract, and ranges that come and go in the
 * middle of a pass. test_sampler_sources.c has the kernel's and the emulated machine's sources. */
#include "sampler_util.h"

#include "pages/rules/coverage.h"
#include "rounds.h"

/* --- sources of the tests: what they see is a function of the address ---------------- */

static int opened, added, watched_pages, fail_add;
static bool (*writes_at)(uintptr_t page), (*reads_at)(uintptr_t page);

static int fake_open(void)
{
    opened++;
    return 0;
}

static void fake_close(void)
{
    opened--;
}

static int fake_add(void *base, size_t bytes)
{
    (void)base;
    added += (int)(bytes / HY_PAGE);
    return fail_add;
}

static void fake_remove(void *base, size_t bytes)
{
    (void)base;
    added -= (int)(bytes / HY_PAGE);
}

static int fake_watch(void *base, uint32_t pages, const struct page_set *set)
{
    (void)base;
    for (uint32_t i = 0; i < pages; i++)
        watched_pages += page_set_has(set, i);
    return 0;
}

static int fake_look(void *base, uint32_t pages, const struct page_set *set, unsigned round,
                     struct page_seen *seen)
{
    for (uint32_t i = 0; i < pages; i++)
        if (page_set_has(set, i) && writes_at((uintptr_t)base / HY_PAGE + i))
            seen[i].writes |= (uint8_t)(1u << round);
    return 0;
}

/* Ten reads of every page that is read, each round, and one write of what is written. */
static int fake_drain(sampler_access_fn fn)
{
    for (uintptr_t page = 0; page < 4 * 512; page++)
        for (int i = 0; i < 10; i++) {
            uintptr_t at = 0x10000000 / HY_PAGE + page;
            if (reads_at && reads_at(at))
                fn(at * HY_PAGE + 8, false);
            if (i == 0 && writes_at(at))
                fn(at * HY_PAGE + 8, true);
        }
    fn(12, true); /* somewhere else */
    return 0;
}

static const struct sampler_source fake = {.name = "fake",
                                           .writes = true,
                                           .open = fake_open,
                                           .close = fake_close,
                                           .add = fake_add,
                                           .remove = fake_remove,
                                           .watch = fake_watch,
                                           .look = fake_look};
static const struct sampler_source samples = {
    .name = "samples", .reads = true, .open = fake_open, .close = fake_close, .drain = fake_drain};
static const struct sampler_source both = {.name = "both",
                                           .reads = true,
                                           .writes = true,
                                           .open = fake_open,
                                           .close = fake_close,
                                           .drain = fake_drain,
                                           .period = 7};

static void open_fakes(const struct sampler_source *a, const struct sampler_source *b)
{
    added = watched_pages = fail_add = 0;
    open_with(a, b);
}

static bool page_100_to_300(uintptr_t page)
{
    return page >= PAGE_OF(100) && page < PAGE_OF(300);
}

static bool none(uintptr_t page)
{
    (void)page;
    return false;
}

static void written_pages_are_found_and_move(void **state)
{
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = 1000,
                            .moves = 1000,
                            .margin = MOVE_MARGIN};
    struct page_move list[8];
    struct pass_stats stats;
    uint64_t totals[HY_TIERS][BANDS], on[HY_TIERS];
    (void)state;
    open_fakes(&fake, NULL);
    assert_string_equal(sampler_source_name(true), "fake");
    assert_null(sampler_source_name(false));
    writes_at = page_100_to_300;
    assert_int_equal(sampler_add(BASE, 8 * MIB, HY_PM, false), 0);
    assert_int_equal(sampler_blocks(), 4);
    for (int i = 0; i < 8; i++)
        stats = pass();
    assert_int_equal(stats.observed, 2048);
    assert_int_equal(stats.predicted[WD_FREQ_H], 200);
    unsigned n = sampler_moves(&l, 1 << 20, list, 8, NULL);
    assert_int_equal(n, 1);
    assert_ptr_equal(list[0].base, BASE + 100 * HY_PAGE);
    assert_int_equal(list[0].bytes, 200 * HY_PAGE);
    assert_int_equal(list[0].to, HY_DRAM);
    /* half of it moves, the other refuses */
    sampler_moved(list[0].base, 100 * HY_PAGE, HY_DRAM, SAMPLER_MOVED);
    sampler_moved((char *)list[0].base + 100 * HY_PAGE, 100 * HY_PAGE, HY_PM, SAMPLER_REFUSED);
    assert_int_equal(sampler_moves(&l, 1 << 20, list, 8, NULL), 0); /* it rests */
    for (unsigned i = 0; i < HISTORY_COOL; i++)
        pass();
    sampler_totals(totals, on);
    assert_int_equal(totals[HY_DRAM][BAND_H_HOT], 100);
    assert_int_equal(totals[HY_PM][BAND_H_HOT], 100);
    assert_int_equal(totals[HY_PM][BAND_REST], 2048 - 200);
    n = sampler_moves(&l, 1 << 20, list, 8, NULL);
    assert_int_equal(n, 1);
    assert_ptr_equal(list[0].base, BASE + 200 * HY_PAGE);
    sampler_close();
    assert_int_equal(opened, 0);
}

static void reads_come_from_another_source(void **state)
{
    struct pass_stats stats;
    uint64_t totals[HY_TIERS][BANDS], on[HY_TIERS];
    (void)state;
    open_fakes(&fake, &samples);
    assert_string_equal(sampler_source_name(false), "samples");
    writes_at = none;
    reads_at = page_100_to_300;
    assert_int_equal(sampler_add(BASE, 8 * MIB, HY_PM, false), 0);
    for (int i = 0; i < 8; i++)
        stats = pass();
    assert_int_equal(stats.predicted[UN_WD], 2048);
    sampler_totals(totals, on);
    assert_int_equal(totals[HY_PM][BAND_HOT_RD], 200);
    assert_int_equal(totals[HY_PM][BAND_REST], 1848);
    sampler_close();
    /* One source for both: ten reads and a write are the read domain, a write alone is not. */
    open_fakes(&both, NULL);
    writes_at = page_100_to_300;
    assert_int_equal(sampler_add(BASE, 8 * MIB, HY_PM, false), 0);
    for (int i = 0; i < 8; i++)
        pass();
    sampler_totals(totals, on);
    assert_int_equal(totals[HY_PM][BAND_HOT_RD], 200);
    reads_at = NULL;
    for (int i = 0; i < 8; i++)
        pass();
    sampler_totals(totals, on);
    assert_int_equal(totals[HY_PM][BAND_H_HOT], 200);
    sampler_close();
}

/* What a pass was told of pages that somebody names, and whether they are where they were. */
static void pages_that_are_named(void **state)
{
    uint64_t told = 0, totals[HY_TIERS][BANDS], on[HY_TIERS];
    (void)state;
    open_fakes(&both, NULL);
    assert_int_equal(sampler_period(), 7);
    writes_at = page_100_to_300;
    reads_at = page_100_to_300;
    assert_int_equal(sampler_add(BASE, 8 * MIB, HY_PM, false), 0);
    assert_false(sampler_accesses(BASE, HY_PAGE, &told));
    pass();
    /* Ten reads and a write a round; half of the pages are not used. */
    assert_true(sampler_accesses(BASE + 98 * HY_PAGE, 4 * HY_PAGE, &told));
    assert_int_equal(told, 2 * HISTORY_ROUNDS * 11);
    assert_true(sampler_accesses(BASE, HY_PAGE, &told)); /* adds */
    assert_int_equal(told, 2 * HISTORY_ROUNDS * 11);
    assert_false(sampler_accesses(BASE + 2048 * HY_PAGE, HY_PAGE, &told));
    assert_true(sampler_all_on(BASE, 8 * MIB, HY_PM));
    sampler_moved(BASE + 5 * HY_PAGE, 2 * HY_PAGE, HY_DRAM, SAMPLER_MOVED);
    assert_true(sampler_all_on(BASE + 5 * HY_PAGE, 2 * HY_PAGE, HY_DRAM));
    assert_false(sampler_all_on(BASE + 4 * HY_PAGE, 3 * HY_PAGE, HY_DRAM));
    assert_false(sampler_all_on(BASE + 2047 * HY_PAGE, 2 * HY_PAGE, HY_PM));
    size_t alike = 8 * MIB;
    assert_true(sampler_far(BASE, &alike));
    assert_int_equal(alike, 5 * HY_PAGE);
    assert_false(sampler_far(BASE + 5 * HY_PAGE, &alike));
    assert_int_equal(alike, 2 * HY_PAGE);
    alike = 8 * MIB;
    assert_true(sampler_far(BASE + 2047 * HY_PAGE, &alike)); /* what follows is not watched */
    assert_int_equal(alike, HY_PAGE);
    assert_false(sampler_far(BASE + 2048 * HY_PAGE, &alike));
    assert_int_equal(alike, HY_PAGE);
    sampler_begin(UINT64_MAX); /* the next one has been told of nothing yet */
    assert_false(sampler_accesses(BASE, HY_PAGE, &told));
    for (int i = 0; i < 8; i++)
        pass();
    sampler_cool();
    sampler_totals(totals, on);
    assert_int_equal(totals[HY_PM][BAND_REST] + totals[HY_DRAM][BAND_REST], 2048);
    assert_int_equal(on[HY_DRAM], 2);
    sampler_remove(BASE, 8 * MIB);
    assert_false(sampler_all_on(BASE, HY_PAGE, HY_PM));
    sampler_close();
    open_fakes(&fake, &samples);
    assert_int_equal(sampler_period(), 0); /* writes are not counted */
    sampler_close();
}

static void nothing_works(void **state)
{
    const struct sampler_source *list[] = {&broken, &samples, NULL};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    struct pass_stats stats;
    (void)state;
    assert_int_equal(sampler_open(list, &p, 1), -ENODEV);
    assert_int_equal(opened, 0);
    assert_null(sampler_source_name(true));
    assert_int_equal(sampler_add(BASE, MIB, HY_PM, false), -ENODEV);
    sampler_remove(BASE, MIB);
    assert_int_equal(sampler_begin(10), 0);
    sampler_round(0);
    sampler_end(&stats);
    assert_int_equal(stats.observed, 0);
    sampler_moved(BASE, MIB, HY_PM, SAMPLER_MOVED);
    sampler_close();
}

/* Ranges at random, in the middle of passes too: every page is once in the totals. */
static void ranges_come_and_go(void **state)
{
    enum { PAGES = 8192 };
    static bool there[PAGES];
    uint64_t random = 3, totals[HY_TIERS][BANDS], on[HY_TIERS];
    (void)state;
    open_fakes(&fake, NULL);
    writes_at = page_100_to_300;
    memset(there, 0, sizeof(there));
    for (unsigned i = 0; i < 3000; i++) {
        size_t first = random_next(&random) % PAGES, n = random_next(&random) % 600 + 1;
        n = HY_MIN(n, PAGES - first);
        bool add = random_next(&random) % 3 != 0;
        if (i % 7 == 0)
            sampler_begin(1 + random % 5);
        sampler_round(i % HISTORY_ROUNDS);
        if (add)
            assert_int_equal(sampler_add(BASE + first * HY_PAGE, n * HY_PAGE, i & 1, false), 0);
        else
            sampler_remove(BASE + first * HY_PAGE, n * HY_PAGE);
        memset(there + first, add, n);
        if (i % 7 == 6) {
            struct pass_stats stats;
            sampler_end(&stats);
        }
        uint64_t pages = 0;
        sampler_totals(totals, on);
        for (unsigned t = 0; t < HY_TIERS; t++)
            for (unsigned b = 0; b < BANDS; b++)
                pages += totals[t][b];
        for (unsigned k = 0; k < PAGES; k++)
            pages -= there[k];
        assert_int_equal(pages, 0);
    }
    assert_int_equal(sampler_add(BASE + 1, HY_PAGE, HY_PM, false), -EINVAL);
    fail_add = -EBUSY; /* the source cannot: not tracked, and told */
    sampler_remove(BASE, PAGES * HY_PAGE);
    assert_int_equal(sampler_add(BASE, HY_PAGE, HY_PM, false), -EBUSY);
    assert_int_equal(sampler_blocks(), 0);
    sampler_close();
}

/* What moved away from its home is known, through all that can happen to the memory. */
static void the_books(void **state)
{
    (void)state;
    open_fakes(&fake, NULL);
    writes_at = none;
    assert_int_equal(sampler_add(BASE, 4 * MIB, HY_PM, true), 0);
    assert_int_equal(sampler_add(BASE + 4 * MIB, 4 * MIB, HY_PM, true), 0); /* joins */
    assert_int_equal(sampler_add(BASE + 64 * MIB, 2 * MIB, HY_DRAM, false), 0);
    assert_int_equal(sampler_blocks(), 5);
    assert_int_equal(sampler_extra_dram(), 0);
    sampler_moved(BASE + MIB, 4 * MIB, HY_DRAM, SAMPLER_MOVED);
    assert_int_equal(sampler_extra_dram(), 1024);
    sampler_moved(BASE + 64 * MIB, MIB, HY_PM, SAMPLER_MOVED);
    assert_int_equal(sampler_extra_dram(), 1024 - 256);
    /* Again, or refused: no difference. */
    sampler_moved(BASE + MIB, MIB, HY_DRAM, SAMPLER_MOVED);
    sampler_moved(BASE, MIB, HY_DRAM, SAMPLER_REFUSED);
    assert_int_equal(sampler_extra_dram(), 1024 - 256);
    sampler_discard(BASE + 2 * MIB, MIB);
    assert_int_equal(sampler_extra_dram(), 768 - 256);
    /* A hole in the middle: what is left is where it was. */
    sampler_remove(BASE + 3 * MIB, MIB);
    assert_int_equal(sampler_extra_dram(), 512 - 256);
    sampler_remove(BASE, 8 * MIB);
    assert_int_equal(sampler_extra_dram(), -256);
    sampler_remove(BASE + 64 * MIB, 2 * MIB);
    assert_int_equal(sampler_extra_dram(), 0);
    assert_int_equal(sampler_blocks(), 0);
    sampler_close();
}

/* The end of a block of DRAM that lies on PM: its pages make no difference there, and do on DRAM.
 */
static void a_part_with_another_home(void **state)
{
    (void)state;
    open_fakes(&fake, NULL);
    assert_int_equal(sampler_add(BASE, 8 * MIB, HY_DRAM, true), 0);
    sampler_moved(BASE, MIB, HY_PM, SAMPLER_MOVED);
    sampler_rehome(BASE + 2 * MIB, 4 * MIB, HY_PM);
    assert_int_equal(sampler_extra_dram(), -256);
    sampler_moved(BASE + 3 * MIB, MIB, HY_DRAM, SAMPLER_MOVED);
    assert_int_equal(sampler_extra_dram(), 0);
    sampler_discard(BASE + 3 * MIB, MIB);
    assert_int_equal(sampler_extra_dram(), -256);
    sampler_rehome(BASE + 2 * MIB, 4 * MIB, HY_DRAM);
    sampler_moved(BASE + 2 * MIB, MIB, HY_PM, SAMPLER_MOVED);
    assert_int_equal(sampler_extra_dram(), -512);
    assert_int_equal(sampler_add(BASE + 8 * MIB, MIB, HY_DRAM, true), 0);
    sampler_rehome(BASE + 64 * MIB, MIB, HY_PM); /* nobody watches it */
    assert_int_equal(sampler_extra_dram(), -512);
    sampler_remove(BASE, 9 * MIB);
    assert_int_equal(sampler_extra_dram(), 0);
    assert_int_equal(sampler_blocks(), 0);
    sampler_close();
}

/* 64 GiB of which next to nothing is used: the work of a pass does not grow with it. */
static void a_huge_footprint(void **state)
{
    const size_t all = (size_t)rounds(64) * 1024 * MIB;
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = 1000,
                            .moves = 1000,
                            .margin = MOVE_MARGIN};
    struct sampler_bin bins[256];
    struct page_move list[8];
    uint64_t looked = 0;
    (void)state;
    open_fakes(&fake, NULL);
    writes_at = none;
    for (size_t at = 0; at < all; at += 4 * MIB) /* as a heap takes it */
        assert_int_equal(sampler_add(BASE + at, 4 * MIB, HY_PM, true), 0);
    assert_int_equal(sampler_blocks(), all / (2 * MIB));
    for (unsigned i = 0; i < rounds(200); i++) {
        watched_pages = 0;
        struct pass_stats stats = pass();
        assert_true(watched_pages <= (int)(SAMPLER_BATCH * HISTORY_BLOCK));
        assert_true(stats.observed <= SAMPLER_BATCH * HISTORY_BLOCK);
        looked += stats.observed;
        assert_int_equal(sampler_moves(&l, 4096, list, 8, NULL), 0);
    }
    assert_true(looked >= all / HY_PAGE); /* all of it in two cycles */
    assert_int_equal(sampler_bins(bins, 256), 256);
    uint64_t pages = 0, sampled = 0;
    for (int i = 0; i < 256; i++) {
        pages += bins[i].pages;
        sampled += bins[i].looked;
    }
    assert_int_equal(pages, all / HY_PAGE);
    assert_true(sampled <= 256 * 64);
    sampler_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_books),
        cmocka_unit_test(a_part_with_another_home),
        cmocka_unit_test(a_huge_footprint),
        cmocka_unit_test(written_pages_are_found_and_move),
        cmocka_unit_test(reads_come_from_another_source),
        cmocka_unit_test(pages_that_are_named),
        cmocka_unit_test(nothing_works),
        cmocka_unit_test(ranges_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
