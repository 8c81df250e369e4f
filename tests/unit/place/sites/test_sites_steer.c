/* SPDX-License-Identifier: BSD-2-Clause
 * What a profile does with call sites, and what is booked to them: steering, accounts, blocks of
 * one stack apart, a full table. The modules as in test_sites.c. */
#include "sites_util.h"

static struct profile_site steer_of(site_id id, unsigned n_frames, enum hy_tier tier)
{
    struct site_info s = info_of(id);
    struct profile_site p = {.n_frames = (uint8_t)n_frames, .has_tier = true, .tier = tier};
    memcpy(p.frames, s.frames, n_frames * sizeof(p.frames[0]));
    return p;
}

static void test_steer(void **state)
{
    (void)state;
    enum hy_tier tier = HY_DRAM;
    unsigned unmatched = 99;
    site_id a = (site_id)one.walk(capture, 5, 0x0e4), b = (site_id)one.walk(capture, 5, 0x0e5);
    site_id c = (site_id)one.alloca_frame(capture, 100);
    assert_int_not_equal(a, b);
    assert_false(sites_tier(a, &tier));
    struct site_info ia = info_of(a), ib = info_of(b), ic = info_of(c);
    const void *leaf = return_address(&ia.frames[0], (void *)one.walk);
    const void *other = return_address(&ic.frames[0], (void *)one.walk);
    assert_memory_equal(&ia.frames[1], &ib.frames[1], 3 * sizeof(ia.frames[0]));
    assert_false(sites_may_steer(leaf));

    /* b in full, and two frames that a and b begin with: the longer one wins. */
    struct profile_site p[3] = {steer_of(a, 2, HY_DRAM), steer_of(b, ib.n_frames, HY_PM)};
    sites_steer(p, 2, NULL, &unmatched);
    assert_int_equal(unmatched, 0);
    assert_true(sites_tier(a, &tier) && tier == HY_DRAM);
    assert_true(sites_tier(b, &tier) && tier == HY_PM);
    assert_false(sites_tier(c, &tier));
    assert_true(info_of(b).has_tier && info_of(b).tier == HY_PM);
    assert_true(sites_may_steer(leaf));
    assert_false(sites_may_steer(other));
    assert_false(sites_may_steer((const char *)leaf + 1));
    assert_false(sites_may_steer((const char *)leaf + 4096 * 1000)); /* same low bits */

    /* A stack seen only now finds its tier at once. */
    site_id fresh = (site_id)one.walk(capture, 6, 0x3e4);
    assert_true(sites_tier(fresh, &tier) && tier == HY_DRAM);

    /* Of another build: never matches, and is said. */
    p[0].frames[0].build_id[3] ^= 1;
    p[2] = steer_of(c, 1, HY_PM);
    sites_steer(p, 3, NULL, &unmatched);
    assert_int_equal(unmatched, 1);
    assert_false(sites_tier(a, &tier));
    assert_true(sites_tier(b, &tier) && tier == HY_PM);
    assert_true(sites_tier(c, &tier) && tier == HY_PM);
    assert_true(sites_may_steer(other));

    /* Sites without a tier, or of impossible length, are only for the report. */
    p[0].has_tier = false;
    p[1].n_frames = SITE_FRAMES + 1;
    p[2].n_frames = 0;
    sites_steer(p, 3, NULL, &unmatched);
    assert_int_equal(unmatched, 1); /* p[0], of another build */
    assert_false(sites_tier(b, &tier));
    assert_false(sites_may_steer(leaf));
    sites_steer(NULL, 0, NULL, NULL);
    assert_false(sites_tier(c, &tier));
}

/* A module that is steered before it is loaded, gone, and loaded again. */
static void test_steer_a_module_to_come(void **state)
{
    (void)state;
    enum hy_tier tier;
    unsigned unmatched = 0;
    struct plugin p = load(plugin_path[1]);
    site_id id = (site_id)p.walk(capture, 4, 0x21);
    struct profile_site s = steer_of(id, 4, HY_PM);
    dlclose(p.handle);
    sites_steer(&s, 1, NULL, &unmatched);
    assert_int_equal(unmatched, 1);
    for (int round = 0; round < 3; round++) {
        p = load(plugin_path[1]);
        const void *leaf = return_address(&s.frames[0], (void *)p.walk);
        assert_true(sites_may_steer(leaf));
        assert_true(sites_tier((site_id)p.walk(capture, 5, 0x081), &tier) && tier == HY_PM);
        dlclose(p.handle);
    }
    sites_steer(&s, 1, NULL, &unmatched);
    sites_steer(NULL, 0, NULL, NULL);
}

static void test_accounts(void **state)
{
    (void)state;
    site_id id = (site_id)one.realigned(capture, 10);
    struct site_info s = info_of(id);
    assert_int_equal(s.count, 0);
    sites_note_alloc(id, 1000, 1);
    sites_note_alloc(id, 10, 50);
    sites_note_free(id, 10, 50);
    s = info_of(id);
    assert_int_equal(s.count, 51);
    assert_int_equal(s.bytes, 1500);
    assert_int_equal(s.live_count, 1);
    assert_int_equal(s.live_bytes, 1000);
    sites_note_free(id, 5000, 3); /* more than there was: none, not 2^64 */
    s = info_of(id);
    assert_int_equal(s.live_count, 0);
    assert_int_equal(s.live_bytes, 0);
    sites_note_alloc(SITE_MAX, 1, 1); /* no such id: under "other", no harm */
    assert_false(sites_get(SITE_MAX, &s));
    assert_false(sites_get((site_id)sites_count(), &s));
}

/* Blocks of one stack that are in use at the same time are sites of their own. */
static void test_nth_block(void **state)
{
    (void)state;
    const uint64_t large = 1 << 20;
    enum hy_tier tier;
    site_id base = (site_id)one.walk(capture, 5, 0x4c1), nth[4];
    assert_int_equal(sites_nth(base, large), base);
    assert_int_equal(sites_nth(0, large), 0);
    sites_note_alloc(base, large, 1);
    for (unsigned k = 1; k < 4; k++) {
        nth[k] = sites_nth(base, large);
        assert_int_not_equal(nth[k], base);
        struct site_info s = info_of(nth[k]), b = info_of(base);
        assert_int_equal(s.nth, k);
        assert_int_equal(s.n_frames, b.n_frames);
        assert_memory_equal(s.frames, b.frames, s.n_frames * sizeof(s.frames[0]));
        assert_int_equal(sites_nth(base, large), nth[k]);
        assert_int_equal(sites_nth(base, 100), base); /* small ones are not told apart */
        sites_note_alloc(nth[k], large, 1);
        sites_note_alloc(base, 100, 50); /* nor do sampled ones count */
    }
    /* One goes: its place is taken again, not a new one. */
    sites_note_free(nth[3], large, 1);
    assert_int_equal(sites_nth(base, large), nth[3]);

    /* In a profile: the second by its number, all others by the frames. */
    struct profile_site p[2] = {steer_of(base, 3, HY_PM), steer_of(base, 3, HY_DRAM)};
    p[1].nth = 2;
    sites_steer(p, 2, NULL, NULL);
    assert_true(sites_tier(base, &tier) && tier == HY_PM);
    assert_true(sites_tier(nth[1], &tier) && tier == HY_PM);
    assert_true(sites_tier(nth[2], &tier) && tier == HY_DRAM);
    assert_int_equal(sites_steered(nth[2]), 1);
    /* Bytes noted from now on, by place. */
    sites_note_alloc(nth[1], large, 1);
    sites_note_alloc(base, 1000, 2);
    sites_note_alloc(nth[2], 500, 1);
    assert_int_equal(sites_steered_live(0), large + 2000);
    assert_int_equal(sites_steered_live(1), 500);
    sites_set_tier(0, false, HY_DRAM);
    assert_false(sites_tier(nth[1], &tier));
    sites_set_tier(0, true, HY_DRAM);
    assert_true(sites_tier(base, &tier) && tier == HY_DRAM);
    sites_set_tier(PROFILE_MAX_SITES, true, HY_DRAM); /* no such place: no harm */
    sites_steer(NULL, 0, NULL, NULL);
    /* Many: the later ones are the stack's own again. */
    for (unsigned k = 0; k < 100; k++)
        sites_note_alloc(sites_nth(base, large), large, 1);
    assert_int_equal(sites_nth(base, large), base);
}

/* Last: it fills the table for good. */
static void test_full_table(void **state)
{
    (void)state;
    enum hy_tier tier;
    unsigned other = 0;
    site_id early = (site_id)one.walk(capture, 7, 3);
    for (unsigned i = 0; i < SITE_MAX * 3; i++)
        other += one.walk(capture, 7, i) == 0;
    assert_true(other >= SITE_MAX);
    assert_true(sites_count() < SITE_MAX);
    assert_true(sites_count() > SITE_MAX * 9 / 10);
    unsigned full = sites_count();
    assert_int_equal(one.walk(capture, 7, 3), early);
    assert_int_equal(one.walk(capture, 7, SITE_MAX * 3 - 1), 0);
    /* There is still room for what a profile steers. */
    struct profile_site p = steer_of(early, 1, HY_PM);
    sites_steer(&p, 1, NULL, NULL);
    site_id steered = (site_id)one.walk(capture, 7, SITE_MAX * 3 + 5);
    assert_int_not_equal(steered, 0);
    assert_true(sites_tier(steered, &tier) && tier == HY_PM);
    assert_int_equal(sites_count(), full + 1);
    for (unsigned i = 0; i < SITE_MAX; i++)
        one.walk(capture, 7, SITE_MAX * 3 + 6 + i);
    assert_int_equal(sites_count(), SITE_MAX);
    assert_int_equal(one.walk(capture, 7, 3), early);
    sites_steer(NULL, 0, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s PLUGIN PLUGIN\n", argv[0]);
        return 2;
    }
    int r = sites_begin(argv + 1);
    if (r != 0)
        return r;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steer),      cmocka_unit_test(test_steer_a_module_to_come),
        cmocka_unit_test(test_accounts),   cmocka_unit_test(test_nth_block),
        cmocka_unit_test(test_full_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
