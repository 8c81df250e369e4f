/* SPDX-License-Identifier: BSD-2-Clause
 * Heaps over plain memory, whose supplier, limits and medium a test sets: what test_heap.c and
 * test_heap_memory.c share. Every test leaves the heaps valid. */
#ifndef HYBRID_TESTS_HEAP_UTIL_H
#define HYBRID_TESTS_HEAP_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/heap.h"
#include "heap/internal.h"
#include "sys/os.h"

#define RANGE (512 * HY_MIB)

static char *base;
static size_t taken[HY_TIERS];
static uint64_t charged[HY_TIERS], limit[HY_TIERS] = {UINT64_MAX, UINT64_MAX};
static bool supplier_dry[HY_TIERS];

static void *take(enum hy_tier t, size_t bytes)
{
    if (supplier_dry[t] || taken[t] + bytes > RANGE)
        return NULL;
    char *p = base + (t == HY_PM ? RANGE : 0) + taken[t];
    taken[t] += bytes;
    assert_int_equal(os_commit(p, bytes), 0);
    return p;
}

static int purge(enum hy_tier t, void *p, size_t bytes)
{
    (void)t;
    return os_purge(p, bytes);
}

static bool charge(enum hy_tier t, size_t bytes, bool force)
{
    if (!force && charged[t] + bytes > limit[t])
        return false;
    charged[t] += bytes;
    return true;
}

static void discharge(enum hy_tier t, size_t bytes)
{
    assert_true(charged[t] >= bytes);
    charged[t] -= bytes;
    heap_reopen(t);
}

static uint64_t room(enum hy_tier t)
{
    return limit[t] - charged[t];
}

/* Memory that the heap was given, but may not use before. */
static bool medium_full;

static bool restore(enum hy_tier t, void *p, size_t bytes)
{
    assert_true(heap_owns(p) && heap_tier_of(p) == t && bytes % HEAP_GRANULE == 0);
    if (t == HY_DRAM)
        return os_replace_by_anon(p, bytes) == 0;
    return !medium_full;
}

static bool trim(enum hy_tier t, void *p, size_t bytes)
{
    return purge(t, p, bytes) == 0;
}

/* A part of a block lies on PM. */
static bool may_split, split_striped;
static char *split_block;
static size_t split_size, split_bytes;

static bool split(void *block, size_t size, size_t away, const uint8_t *level)
{
    if (!may_split || !charge(HY_PM, away, false))
        return false;
    split_block = block;
    split_size = size;
    split_bytes = away;
    split_striped = level != NULL;
    return true;
}

static void join(void *block)
{
    assert_ptr_equal(block, split_block);
    assert_int_equal(purge(HY_DRAM, split_block + split_size - split_bytes, split_bytes), 0);
    discharge(HY_PM, split_bytes);
    split_block = NULL;
}

/* Pages of DRAM's range that the kernel has put on PM. */
static char *far_from, *far_to;

static bool lies_far(const void *p, size_t *bytes)
{
    char *from = (char *)(uintptr_t)p, *end = from + *bytes;
    bool far = from >= far_from && from < far_to;
    char *to = far ? far_to : from < far_from ? far_from : end;
    *bytes = (size_t)(HY_MIN(to, end) - from);
    return far;
}

/* Mapped afresh, unless the kernel will not. */
static bool renew_fails;

static int renew(enum hy_tier t, void *p, size_t bytes, bool in_use)
{
    (void)in_use;
    assert_true(heap_owns(p) && heap_tier_of(p) == t && bytes % HEAP_GRANULE == 0);
    return renew_fails ? -1 : os_replace_by_anon(p, bytes);
}

static int make_heap(void **state)
{
    static const struct heap_host host = {.take = take,
                                          .purge = purge,
                                          .charge = charge,
                                          .discharge = discharge,
                                          .room = room,
                                          .room_now = room,
                                          .split = split,
                                          .join = join,
                                          .restore = restore,
                                          .renew = renew,
                                          .trim = trim,
                                          .lies_far = lies_far};
    const size_t bytes[HY_TIERS] = {RANGE, RANGE};
    void *p;
    (void)state;
    if (os_reserve(2 * RANGE, HEAP_GRANULE, &p))
        return -1;
    base = p;
    return heap_init(base, bytes, &host);
}

static int settle(void **state)
{
    (void)state;
    for (int t = 0; t < HY_TIERS; t++) {
        limit[t] = UINT64_MAX;
        supplier_dry[t] = may_split = false;
        heap_trim((enum hy_tier)t);
    }
    heap_set_favour(HY_DRAM);
    return heap_is_valid() ? 0 : -1;
}

static const struct heap_want dram = {.tier = HY_DRAM, .weight = 1};
static const struct heap_want pm = {.tier = HY_PM, .weight = 1};

#define HEAP_TEST(f) cmocka_unit_test_setup(f, settle)

#endif
