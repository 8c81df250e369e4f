/* SPDX-License-Identifier: BSD-2-Clause
 * What becomes of free runs while DRAM is short. */
#include "heap_util.h"

#define SIZE (2 * HY_MIB)

static char *make_and_free(void)
{
    char *p = heap_alloc(SIZE, &dram);
    memset(p, 1, SIZE);
    char *page = (char *)((uintptr_t)p & ~(HY_PAGE - 1));
    heap_free(p);
    return page;
}

/* Where an idle page costs less than one that is made anew, a block that is made and freed again
 * and again keeps its DRAM, after it was given back too early; when that is over, it goes. */
static void idle_dram_is_kept_where_it_is_cheap(void **state)
{
    struct heap_stats s;
    (void)state;
    void *live = heap_alloc(32 * HY_MIB, &dram);
    heap_trim(HY_DRAM);
    heap_set_dram(HEAP_DRAM_SHORT);
    far_from = base; /* some PM in it, so that its addresses are kept */
    uint64_t before = charged[HY_DRAM];
    for (int i = 0; i < 8; i++) {
        char *page = make_and_free();
        far_from = page + SIZE / 2;
        far_to = page + SIZE;
    }
    assert_in_range(charged[HY_DRAM] - before, SIZE / 2, SIZE / 2 + 34 * HY_MIB / 32);
    heap_get_stats(HY_DRAM, &s);
    uint64_t retaken = s.retaken_pages;
    assert_in_range(s.idle_pages, SIZE / HY_PAGE / 2, SIZE / HY_PAGE);

    heap_set_dram(HEAP_DRAM_CHEAP);
    (void)make_and_free();
    assert_in_range(charged[HY_DRAM] - before, SIZE, SIZE + HY_MIB / 4);
    heap_get_stats(HY_DRAM, &s);
    assert_in_range(s.retaken_pages - retaken, SIZE / HY_PAGE / 2, SIZE / HY_PAGE);

    heap_set_dram(HEAP_DRAM_SHORT);
    assert_in_range(charged[HY_DRAM] - before, SIZE / 2, SIZE / 2 + HY_MIB / 4);
    assert_true(heap_is_valid());
    heap_trim(HY_DRAM);
    assert_int_equal(charged[HY_DRAM], before);
    heap_set_dram(HEAP_DRAM_AMPLE);
    far_from = far_to = NULL;
    heap_free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAP_TEST(idle_dram_is_kept_where_it_is_cheap),
    };
    return cmocka_run_group_tests(tests, make_heap, NULL);
}
