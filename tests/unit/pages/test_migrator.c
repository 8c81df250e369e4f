/* SPDX-License-Identifier: BSD-2-Clause
 * The migrator over a kernel of our own (the two functions of sys/pages/move.h below): statuses
 * that lie, pages that refuse, nodes that are full; and over an emulated machine's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <emu/pmemu.h>

#include "pages/mover.h"
#include "sys/emulator.h"
#include "sys/pages/move.h"

#define PAGES 64u
#define BASE  ((char *)0x40000000)

/* --- the kernel ------------------------------------------------------------------------ */

enum manner { WILLING, BUSY_ONCE, BUSY_TWICE, BUSY, SHARED, ABSENT, LIES };

static struct {
    enum manner manner[PAGES];
    int node[PAGES];
    int room[4];     /* pages, by node */
    int calls, fail; /* fail: of every call */
} kernel;

static unsigned number(const void *page)
{
    return (unsigned)((size_t)((const char *)page - BASE) / HY_PAGE);
}

static int move_one(unsigned p, int node)
{
    switch (kernel.manner[p]) {
    case ABSENT:
        return -ENOENT;
    case SHARED:
        return -EACCES;
    case BUSY:
        return -EBUSY;
    case BUSY_TWICE:
    case BUSY_ONCE:
        kernel.manner[p] = kernel.manner[p] == BUSY_TWICE ? BUSY_ONCE : WILLING;
        return -EBUSY;
    default:
        kernel.node[p] = node;
        kernel.room[node]--;
        return kernel.manner[p] == LIES ? -EBUSY : node;
    }
}

int os_move_pages(void *const *pages, unsigned n, int node, int *ret_where, int untouched)
{
    kernel.calls++;
    if (kernel.fail)
        return kernel.fail;
    for (unsigned i = 0; i < n; i++)
        ret_where[i] = untouched;
    for (unsigned i = 0; i < n; i++) {
        unsigned p = number(pages[i]);
        if (kernel.room[node] == 0 && kernel.node[p] != node)
            return -ENOMEM;
        ret_where[i] = kernel.node[p] == node ? node : move_one(p, node);
    }
    return 0;
}

int os_page_nodes(void *const *pages, unsigned n, int *ret_where)
{
    if (kernel.fail)
        return kernel.fail;
    for (unsigned i = 0; i < n; i++)
        ret_where[i] =
            kernel.manner[number(pages[i])] == ABSENT ? -ENOENT : kernel.node[number(pages[i])];
    return 0;
}

static struct migrator numa = {MIGRATE_NUMA, {[HY_DRAM] = 1, [HY_PM] = 2 | 4}};

static void reset(void)
{
    memset(&kernel, 0, sizeof(kernel));
    for (unsigned i = 0; i < 4; i++)
        kernel.room[i] = 1000;
}

/* The outcomes must be what the kernel knows, whatever it said. */
static void check(const struct migrate_result *r, uint64_t nodes)
{
    uint32_t count[MIGRATE_REFUSED + 1] = {0};
    for (unsigned i = 0; i < PAGES; i++) {
        bool there = kernel.node[i] >= 0 && (nodes >> kernel.node[i] & 1);
        assert_true(r->page[i] <= MIGRATE_REFUSED);
        assert_int_equal(r->page[i] <= MIGRATE_THERE, there && kernel.manner[i] != ABSENT);
        count[r->page[i]]++;
    }
    assert_memory_equal(count, r->count, sizeof(count));
}

static void all_move_and_back(void **state)
{
    struct migrate_result r;
    (void)state;
    reset();
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    check(&r, 6);
    assert_int_equal(r.count[MIGRATE_MOVED], PAGES);
    assert_int_equal(kernel.calls, 1); /* one call for all */
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    assert_int_equal(r.count[MIGRATE_THERE], PAGES);
    assert_int_equal(kernel.calls, 1); /* nothing to do, nothing done */
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_DRAM, &r), 0);
    check(&r, 1);
    assert_int_equal(r.count[MIGRATE_MOVED], PAGES);
}

static void every_page_is_answered_for(void **state)
{
    struct migrate_result r;
    (void)state;
    reset();
    for (unsigned i = 0; i < PAGES; i++)
        kernel.manner[i] = (enum manner)(i % 7);
    kernel.node[0] = 2;
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    check(&r, 6);
    for (unsigned i = 0; i < PAGES; i++) {
        static const uint8_t wanted[] = {MIGRATE_MOVED,   MIGRATE_MOVED,   MIGRATE_MOVED,
                                         MIGRATE_REFUSED, MIGRATE_REFUSED, MIGRATE_ABSENT,
                                         MIGRATE_MOVED};
        assert_int_equal(r.page[i], i == 0 ? MIGRATE_THERE : wanted[i % 7]);
    }
    assert_true(kernel.calls <= 10); /* it gives up */
}

static void shared_pages_are_not_asked_again(void **state)
{
    struct migrate_result r;
    (void)state;
    reset();
    for (unsigned i = 0; i < PAGES; i++)
        kernel.manner[i] = SHARED;
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    assert_int_equal(r.count[MIGRATE_REFUSED], PAGES);
    assert_int_equal(kernel.calls, 2); /* its two nodes */
}

static void full_nodes(void **state)
{
    struct migrate_result r;
    (void)state;
    reset();
    kernel.room[1] = 10;
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    check(&r, 6);
    assert_int_equal(r.count[MIGRATE_MOVED], PAGES); /* the rest on the other node */
    reset();
    kernel.room[1] = 10;
    kernel.room[2] = 0;
    assert_int_equal(migrate(&numa, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    check(&r, 6);
    assert_int_equal(r.count[MIGRATE_MOVED], 10);
    assert_int_equal(r.count[MIGRATE_FULL], PAGES - 10);
}

static void what_cannot_be_is_said(void **state)
{
    struct migrate_result r = {.ns = 77};
    struct migrator none = {0}, no_pm = {MIGRATE_NUMA, {[HY_DRAM] = 1}};
    struct migrator file = {MIGRATE_FILE, {0}};
    (void)state;
    reset();
    assert_int_equal(migrate(&none, BASE, HY_PAGE, HY_PM, &r), -ENODEV);
    assert_int_equal(migrate(&no_pm, BASE, HY_PAGE, HY_PM, &r), -ENODEV);
    assert_int_equal(migrate(&file, BASE, HY_PAGE, HY_DRAM, &r), -EOPNOTSUPP);
    assert_int_equal(migrate(&numa, BASE + 1, HY_PAGE, HY_PM, &r), -EINVAL);
    assert_int_equal(migrate(&numa, BASE, 0, HY_PM, &r), -EINVAL);
    assert_int_equal(migrate(&numa, BASE, (MIGRATE_PAGES + 1) * HY_PAGE, HY_PM, &r), -EINVAL);
    kernel.fail = -EPERM;
    assert_int_equal(migrate(&numa, BASE, HY_PAGE, HY_PM, &r), -EPERM);
    assert_int_equal(r.ns, 77); /* untouched */
}

/* --- the emulated machine's ----------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))

static int tier[PAGES];
static unsigned dram_room, unused = PAGES;

EXPORT int64_t pmemu_move(const void *base, size_t bytes, int to)
{
    int64_t moved = 0;
    for (unsigned i = number(base); i < number(base) + bytes / HY_PAGE; i++) {
        if (i == unused || (to == 0 && dram_room == 0))
            continue;
        dram_room -= to == 0;
        tier[i] = to;
        moved++;
    }
    return moved;
}

EXPORT int pmemu_range_tiers(const void *base, size_t bytes, uint8_t *ret)
{
    for (unsigned i = 0; i < bytes / HY_PAGE; i++)
        ret[i] = number(base) + i == unused ? 0xff : (uint8_t)tier[number(base) + i];
    return 0;
}

EXPORT int pmemu_ignore_code(const void *start, const void *end)
{
    return start < end ? 0 : -EINVAL;
}

EXPORT int pmemu_set_tier(const void *base, size_t bytes, int to)
{
    (void)base;
    return bytes && to >= 0 ? 0 : -EINVAL;
}

static void where_pages_are_is_told(void **state)
{
    struct migrator emulated = {MIGRATE_EMULATED, {0}};
    void *page[4] = {BASE, BASE + HY_PAGE, BASE + 2 * HY_PAGE, BASE + 3 * HY_PAGE};
    int8_t tier_of[4] = {7, 7, 7, 7};
    (void)state;
    reset();
    kernel.node[1] = 2;
    kernel.node[2] = 3; /* of neither tier */
    kernel.manner[3] = ABSENT;
    assert_int_equal(migrator_where(&emulated, page, 4, tier_of), -EOPNOTSUPP);
    assert_int_equal(tier_of[0], 7);
    assert_int_equal(migrator_where(&numa, page, 4, tier_of), 0);
    assert_int_equal(tier_of[0], HY_DRAM);
    assert_int_equal(tier_of[1], HY_PM);
    assert_int_equal(tier_of[2], -1);
    assert_int_equal(tier_of[3], -1);
    assert_int_equal(migrator_where(&numa, page, MIGRATE_PAGES + 1, tier_of), -EINVAL);
    kernel.fail = -EPERM;
    assert_int_equal(migrator_where(&numa, page, 4, tier_of), -EPERM);
    assert_int_equal(kernel.calls, 0); /* nothing moved */
}

static void the_emulated_machine_moves(void **state)
{
    struct migrator emulated = {MIGRATE_EMULATED, {0}};
    struct migrate_result r;
    (void)state;
    /* Before it is found: in the books. */
    assert_int_equal(migrate(&emulated, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    assert_int_equal(r.count[MIGRATE_MOVED], PAGES);
    assert_int_equal(tier[5], 0);
    assert_true(emulator_open());
    assert_int_equal(migrate(&emulated, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    assert_int_equal(r.count[MIGRATE_MOVED], PAGES);
    assert_int_equal(tier[5], 1);
    dram_room = 20;
    assert_int_equal(migrate(&emulated, BASE, PAGES * HY_PAGE, HY_DRAM, &r), 0);
    assert_int_equal(r.count[MIGRATE_MOVED], 20);
    assert_int_equal(r.count[MIGRATE_FULL], PAGES - 20);
    for (unsigned i = 0; i < PAGES; i++)
        assert_int_equal(r.page[i] == MIGRATE_MOVED, tier[i] == 0);
    /* One that the program has not used yet neither moves nor makes room. */
    unused = 3;
    assert_int_equal(migrate(&emulated, BASE, PAGES * HY_PAGE, HY_PM, &r), 0);
    assert_int_equal(r.page[3], MIGRATE_ABSENT);
    assert_int_equal(r.count[MIGRATE_MOVED], PAGES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_move_and_back),
        cmocka_unit_test(every_page_is_answered_for),
        cmocka_unit_test(shared_pages_are_not_asked_again),
        cmocka_unit_test(full_nodes),
        cmocka_unit_test(what_cannot_be_is_said),
        cmocka_unit_test(where_pages_are_is_told),
        cmocka_unit_test(the_emulated_machine_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
