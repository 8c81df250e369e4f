/* SPDX-License-Identifier: BSD-2-Clause
 * The emulated machine as libhybrid finds it: here made of the functions below, which are
 * found because the program exports them. Heaps and purges tell it; what is asked before it was
 * looked for changes nothing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "heap/supply.h"
#include "pmemu.h"
#include "sys/emulator.h"
#include "sys/os.h"
#include "tests/unit/qemu.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
    uintptr_t base, end; /* latest */
    int calls, tier;
} set, discarded, moved, code;
static int ignored_threads, offered;
static int64_t dram_free = 12345;
static int64_t clock_ns = 1000, clock_step, held;
static int hold_says;

EXPORT int pmemu_set_tier(const void *p, size_t n, int tier)
{
    set.base = (uintptr_t)p;
    set.end = (uintptr_t)p + n;
    set.tier = tier;
    set.calls++;
    return 0;
}

EXPORT int pmemu_range_tiers(const void *p, size_t n, uint8_t *ret)
{
    (void)p;
    memset(ret, PMEMU_UNUSED, n / PMEMU_PAGE);
    return 0;
}

EXPORT int64_t pmemu_dram_free(void)
{
    return dram_free;
}

EXPORT void pmemu_discard(const void *p, size_t n)
{
    discarded.base = (uintptr_t)p;
    discarded.end = (uintptr_t)p + n;
    discarded.calls++;
}

EXPORT int64_t pmemu_move(const void *p, size_t n, int tier)
{
    moved.base = (uintptr_t)p;
    moved.tier = tier;
    return (int64_t)(n / PMEMU_PAGE);
}

EXPORT uint64_t pmemu_tier_bytes(int tier)
{
    return tier ? 500 : 100;
}

EXPORT void pmemu_ignore_thread(void)
{
    ignored_threads++;
}

EXPORT int pmemu_hold(int64_t ns)
{
    held = ns;
    return hold_says;
}

EXPORT int pmemu_ignore_code(const void *start, const void *end)
{
    code.base = (uintptr_t)start;
    code.end = (uintptr_t)end;
    code.calls++;
    return 0;
}

EXPORT int pmemu_offer_events(void)
{
    offered++;
    return 0;
}

EXPORT int64_t pmemu_vtime_ns(void)
{
    return clock_ns += clock_step;
}

static void nothing_before(void **state)
{
    uint8_t tier;

    (void)state;
    emulator_set_tier(&set, 1, HY_PM);
    emulator_discard(&set, 1);
    emulator_ignore_thread();
    emulator_offer_events();
    emulator_ignore_code_of((const void *)(uintptr_t)nothing_before);
    assert_int_equal(emulator_move(&set, 1, HY_PM), -ENODEV);
    assert_int_equal(emulator_bytes(HY_DRAM), 0);
    assert_int_equal(emulator_range_tiers(&set, 1, &tier), -ENODEV);
    assert_true(emulator_dram_free() == UINT64_MAX);
    assert_int_equal(set.calls + discarded.calls + code.calls + ignored_threads + offered, 0);
}

static void found_once(void **state)
{
    (void)state;
    assert_true(emulator_open());
    assert_true(emulator_open());
    assert_int_equal(code.calls, 1);
    assert_true((uintptr_t)emulator_open >= code.base && (uintptr_t)emulator_open < code.end);
    assert_int_equal(emulator_bytes(HY_DRAM), 100);
    assert_int_equal(emulator_bytes(HY_PM), 500);
    assert_int_equal(emulator_move(&set, 3 * HY_PAGE, HY_PM), 3);
    assert_true(moved.base == (uintptr_t)&set && moved.tier == 1);
    emulator_ignore_thread();
    assert_int_equal(held, 1000); /* until it sleeps or lets go */
    assert_int_equal(ignored_threads, 0);
    hold_says = -EAGAIN;
    emulator_ignore_thread();
    assert_int_equal(ignored_threads, 1);
    hold_says = 0;
    emulator_offer_events();
    assert_int_equal(offered, 1);
}

static void where_pages_lie(void **state)
{
    uint8_t t[3] = {7, 7, 7};

    (void)state;
    assert_int_equal(emulator_range_tiers(NULL, 2 * HY_PAGE, t), 0);
    assert_true(t[0] == EMULATOR_UNUSED && t[1] == EMULATOR_UNUSED && t[2] == 7);
    assert_true(emulator_dram_free() == 12345);
    dram_free = INT64_MAX;
    assert_true(emulator_dram_free() == UINT64_MAX);
    dram_free = -ENOSYS; /* preloaded by hybrid-emu, and not on a machine */
    assert_true(emulator_dram_free() == UINT64_MAX);
}

static char *take_named(enum hy_tier t, size_t bytes)
{
    int before = set.calls;
    char *p = supply_take(t, bytes);

    assert_non_null(p);
    assert_true(set.calls <= before + 1); /* memkind's segment was told when it was made ready */
    assert_int_equal(set.tier, t);
    assert_true(set.base <= (uintptr_t)p && (uintptr_t)p + bytes <= set.end);
    return p;
}

/* Each segment of a heap is named before anybody has it, each purge is told. */
static void supply_tells(void **state)
{
    const size_t bytes = 4 * HY_GIB, more = HY_GIB / 4;
    const struct supply_backing plain = {0};
    char err[100], *p[HY_TIERS];
    void *base;

    (void)state;
    SKIP_UNDER_QEMU("the address space ends before two heaps of this size");
    assert_int_equal(supply_load(err, sizeof(err)), 0);
    assert_int_equal(code.calls, 2); /* memkind's code is not the program's either */
    assert_int_equal(os_reserve(2 * bytes, HY_PAGE, &base), 0);
    supply_open(HY_DRAM, base, bytes, &plain);
    supply_open(HY_PM, (char *)base + bytes, bytes, &plain);
    for (int t = 0; t < HY_TIERS; t++)
        p[t] = take_named((enum hy_tier)t, HY_MIB);
    assert_null(supply_take(HY_PM, more)); /* much of PM is taken only where it was made ready */
    assert_int_equal(supply_fill(more), 1);
    (void)take_named(HY_PM, more);
    assert_true(take_named(HY_PM, HY_MIB) == p[HY_PM] + HY_MIB); /* and a little as before */
    /* The next is ready before anybody waits for it, if what is left is little beside what was
     * used. */
    while (supply_take(HY_PM, 8 * HY_MIB))
        ;
    assert_false(supply_is_short(HY_MIB));
    assert_int_equal(supply_fill(HY_MIB), 1);
    assert_int_equal(supply_fill(HY_MIB), 0);
    (void)take_named(HY_PM, more);
    memset(p[HY_PM], 1, HY_MIB);
    assert_int_equal(supply_purge(HY_PM, p[HY_PM], HY_MIB), 0);
    assert_int_equal(discarded.calls, 1);
    assert_true(discarded.base == (uintptr_t)p[HY_PM] && discarded.end == discarded.base + HY_MIB);
    assert_int_not_equal(supply_purge(HY_DRAM, (void *)1, HY_MIB), 0);
    assert_int_equal(discarded.calls, 1);
}

static void sleeps_by_its_clock(void **state)
{
    (void)state;
    clock_step = 100;
    assert_in_range(emulator_sleep_ns(250, UINT64_MAX / 2), 250, 500);
    clock_step = 0; /* it stands still */
    assert_int_equal(emulator_sleep_ns(250, 3000000), 0);
    clock_step = -10;
    assert_int_equal(emulator_sleep_ns(250, 3000000), 0);
}

/* The program gets no further than we sleep, and waits until we come again. */
static void holds_the_program(void **state)
{
    (void)state;
    clock_step = 0;
    int64_t now = clock_ns;
    (void)emulator_sleep_ns(250, 1000000);
    assert_int_equal(held, now + 250);
    clock_step = 100;
    (void)emulator_sleep_ns(1000, UINT64_MAX / 2);
    assert_int_equal(held, now + 1100);
    emulator_let_go();
    assert_int_equal(held, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_before),      cmocka_unit_test(found_once),
        cmocka_unit_test(where_pages_lie),     cmocka_unit_test(supply_tells),
        cmocka_unit_test(sleeps_by_its_clock), cmocka_unit_test(holds_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
