/* SPDX-License-Identifier: BSD-2-Clause
 * Mappings of the program: what tiers and call sites are told when they are made, measured, cut
 * and unmapped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "place/maps.h"

#define PAGES 64
#define BYTES ((size_t)PAGES * HY_PAGE)

static struct {
    int64_t tier[HY_TIERS], live, total;
    int blocks;
} told;

static void account(enum hy_tier t, int64_t delta)
{
    told.tier[t] += delta;
}

static void resized(uint16_t site, uint64_t from, uint64_t to, uint64_t more)
{
    assert_int_equal(site, 7);
    told.live += (int64_t)to - (int64_t)from;
    told.total += (int64_t)more;
}

static void gone(uint16_t site)
{
    assert_int_equal(site, 7);
    told.blocks--;
}

static int begin(void **state)
{
    static const struct maps_host host = {account, resized, gone};
    (void)state;
    memset(&told, 0, sizeof(told));
    maps_init(&host);
    return 0;
}

/* As the runtime does: the first charge is made and told before. */
static char *make(size_t charged)
{
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    (void)madvise(p, BYTES, MADV_NOHUGEPAGE); /* a touch is one page */
    told.tier[HY_PM] += (int64_t)charged;
    told.live += (int64_t)charged;
    told.total += (int64_t)charged;
    told.blocks++;
    maps_add(p, BYTES, HY_PM, 7, charged);
    return p;
}

static void drop(char *p)
{
    maps_remove(p, BYTES);
    munmap(p, BYTES);
    assert_false(maps_any());
    assert_int_equal(told.tier[HY_PM], 0);
    assert_int_equal(told.live, 0);
    assert_int_equal(told.blocks, 0);
}

static void expect(int64_t pages, int64_t total, int blocks)
{
    assert_int_equal(told.tier[HY_PM], pages * (int64_t)HY_PAGE);
    assert_int_equal(told.live, pages * (int64_t)HY_PAGE);
    assert_int_equal(told.total, total * (int64_t)HY_PAGE);
    assert_int_equal(told.blocks, blocks);
}

static void test_whose(void **state)
{
    char *p = make(BYTES);
    enum hy_tier t;
    uint16_t site;
    (void)state;
    assert_true(maps_find(p + BYTES - 1, 1, &t, &site));
    assert_int_equal(t, HY_PM);
    assert_int_equal(site, 7);
    assert_false(maps_find(p + BYTES, 1, &t, &site));
    assert_true(maps_find(p - HY_PAGE, HY_PAGE + 1, &t, &site)); /* a call may begin before it */
    assert_false(maps_find(p - HY_PAGE, HY_PAGE, &t, &site));
    drop(p);
}

/* What is left is measured: as much as was touched. */
static void test_reservation(void **state)
{
    char *p = make(0);
    (void)state;
    expect(0, 0, 1);
    for (int i = 0; i < 10; i++)
        p[(size_t)i * HY_PAGE] = 1;
    maps_measure(PAGES);
    expect(10, 10, 1);
    madvise(p, 4 * HY_PAGE, MADV_DONTNEED);
    maps_measure(PAGES);
    expect(6, 10, 1);
    p[0] = 1; /* no more than there was at one time */
    maps_measure(PAGES);
    expect(7, 10, 1);
    drop(p);
}

static void test_cuts(void **state)
{
    char *p = make(BYTES);
    (void)state;
    maps_remove(p, 4 * HY_PAGE); /* as allocators do that align */
    maps_remove(p + BYTES - 4 * HY_PAGE, 4 * HY_PAGE);
    expect(PAGES - 8, PAGES, 1);
    maps_remove(p + 30 * HY_PAGE, 2 * HY_PAGE); /* a hole: two ranges, one mapping */
    expect(PAGES - 10, PAGES, 1);
    maps_remove(p + 40 * HY_PAGE, BYTES - 40 * HY_PAGE);
    expect(26 + 8, PAGES, 1);
    maps_remove(p, 30 * HY_PAGE);
    expect(8, PAGES, 0);
    drop(p);
}

static void test_of_no_site(void **state)
{
    char *p = make(BYTES);
    (void)state;
    maps_add(p, BYTES, HY_DRAM, 0, 0); /* in its place: the old one is gone */
    expect(0, PAGES, 0);
    maps_measure(PAGES);
    drop(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_whose, begin),
        cmocka_unit_test_setup(test_reservation, begin),
        cmocka_unit_test_setup(test_cuts, begin),
        cmocka_unit_test_setup(test_of_no_site, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
