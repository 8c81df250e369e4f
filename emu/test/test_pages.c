/* SPDX-License-Identifier: BSD-2-Clause
 * The page table of media, with a small DRAM, and room on the media across processes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pages/pages.h"
#include "machine/room.h"

#define PAGE EMU_PAGE_BYTES

/* Each test has addresses of its own: the table is the process'. */
static const uint64_t base = 0x7f0000000000u;

static int64_t in_use[EMU_TIERS], dram_limit;
static uint64_t left_pages, moved_pages;

static bool take(enum emu_tier t)
{
    if (t == EMU_DRAM && in_use[t] >= dram_limit)
        return false;
    in_use[t]++;
    return true;
}

static void give(enum emu_tier t)
{
    in_use[t]--;
}

static void leave(uint64_t address, bool moved)
{
    assert_int_equal(address % PAGE, 0);
    left_pages++;
    moved_pages += moved;
}

static const struct emu_pages_host host = {take, give, leave};

static void start(const char *text, int64_t limit)
{
    struct emu_place place = {7, 7};
    assert_int_equal(emu_place_parse(text, &place), 0);
    emu_pages_start(place, &host);
    memset(in_use, 0, sizeof(in_use));
    left_pages = moved_pages = 0;
    dram_limit = limit;
}

static void names(void **state)
{
    (void)state;
    start("dram", INT64_MAX);
    assert_int_equal(emu_tier_of(base), EMU_DRAM);
    /* Across the border of two leaves (4 GiB); the page that is in use moves. */
    assert_int_equal(emu_pages_set(base - PAGE, 2 * PAGE, EMU_PM, NULL), 0);
    assert_int_equal(emu_tier_of(base - PAGE), EMU_PM);
    assert_int_equal(emu_tier_of(base + PAGE - 1), EMU_PM);
    assert_int_equal(emu_tier_of(base + PAGE), EMU_DRAM);
    assert_int_equal(emu_tier_of(base - PAGE - 1), EMU_DRAM);
    assert_true(in_use[EMU_DRAM] == 2 && in_use[EMU_PM] == 2);
    emu_pages_clear(base - 2 * PAGE, 4 * PAGE);
    assert_true(in_use[EMU_DRAM] == 0 && in_use[EMU_PM] == 0);
    assert_int_equal(emu_tier_of(base), EMU_DRAM);

    start("pm", INT64_MAX);
    assert_int_equal(emu_pages_set(base + 65 * PAGE, 1, EMU_DRAM, NULL), 0);
    assert_int_equal(emu_tier_of(base + 65 * PAGE), EMU_DRAM);
    assert_int_equal(emu_tier_of(12345), EMU_PM);
    emu_pages_clear(base + 65 * PAGE, 1);
    assert_int_equal(emu_tier_of(base + 65 * PAGE), EMU_PM);
    assert_int_equal(emu_pages_set((uint64_t)1 << 48, PAGE, EMU_PM, NULL), -EINVAL);
    assert_int_equal(emu_pages_set(UINT64_MAX - PAGE, PAGE, EMU_PM, NULL), -EINVAL);
    assert_int_equal(emu_tier_of(UINT64_MAX), EMU_PM);
}

static void first_touch(void **state)
{
    const uint64_t a = base + (1u << 30);
    (void)state;
    start("first-touch", 4);
    for (int i = 0; i < 8; i++) { /* in order of use, not of address */
        int page = 7 - i;
        assert_int_equal(emu_pages_look(a + page * PAGE, NULL), EMU_DRAM);
        assert_int_equal(emu_tier_of(a + page * PAGE + 5), i < 4 ? EMU_DRAM : EMU_PM);
    }
    assert_true(in_use[EMU_DRAM] == 4 && in_use[EMU_PM] == 4);
    /* What was given back is used anew; what lies on PM stays there. */
    emu_pages_discard(a + 6 * PAGE, 2 * PAGE);
    assert_int_equal(in_use[EMU_DRAM], 2);
    assert_int_equal(left_pages, 2);
    assert_int_equal(emu_tier_of(a), EMU_PM);
    assert_int_equal(emu_tier_of(a + 6 * PAGE), EMU_DRAM);
    assert_int_equal(emu_tier_of(a + 9 * PAGE), EMU_DRAM);
    assert_int_equal(emu_tier_of(a + 7 * PAGE), EMU_PM);
    /* A part of a page is not given back, but unmapped. */
    emu_pages_discard(a + 6 * PAGE + 1, PAGE - 1);
    assert_int_equal(in_use[EMU_DRAM], 4);
    emu_pages_clear(a + 6 * PAGE + 1, 1);
    assert_int_equal(in_use[EMU_DRAM], 3);
    emu_pages_clear(a, 16 * PAGE);
    assert_true(in_use[EMU_DRAM] == 0 && in_use[EMU_PM] == 0 && moved_pages == 0);
}

/* Without a name again: what is in use stays, the rest goes where nobody's pages go. */
static void unnamed(void **state)
{
    const uint64_t a = base + 0x600000000u, leaf = 1ull << 32;
    (void)state;
    start("first-touch", 3);
    assert_int_equal(emu_pages_set(a, 4 * PAGE, EMU_PM, NULL), 0);
    assert_int_equal(emu_tier_of(a), EMU_PM);
    assert_int_equal(emu_pages_unname(a + 1, 3 * PAGE), 0); /* touches four */
    assert_int_equal(emu_tier_of(a), EMU_PM);
    assert_int_equal(left_pages, 0);
    for (int i = 1; i < 4; i++)
        assert_int_equal(emu_tier_of(a + i * PAGE), EMU_DRAM);
    emu_pages_discard(a, PAGE);
    assert_int_equal(emu_tier_of(a), EMU_PM); /* DRAM is full by now */
    emu_pages_discard(a, 2 * PAGE);
    assert_int_equal(emu_tier_of(a), EMU_DRAM);
    assert_int_equal(emu_tier_of(a + PAGE), EMU_PM);
    emu_pages_clear(a, 4 * PAGE);
    /* A leaf that nobody has used is without a name at once. */
    assert_int_equal(emu_pages_set(a + leaf, 4 * leaf, EMU_PM, NULL), 0);
    assert_int_equal(emu_pages_unname(a + leaf + PAGE, 4 * leaf - 2 * PAGE), 0);
    assert_int_equal(emu_pages_look(a + leaf, NULL), EMU_PM);
    assert_int_equal(emu_pages_look(a + leaf + PAGE, NULL), EMU_DRAM);
    assert_int_equal(emu_pages_look(a + 3 * leaf, NULL), EMU_DRAM);
    assert_int_equal(emu_pages_look(a + 5 * leaf - PAGE, NULL), EMU_PM);
    emu_pages_clear(a + leaf, 4 * leaf);
    assert_int_equal(emu_pages_unname(UINT64_MAX - PAGE, PAGE), -EINVAL);
}

/* Pages are not in use for being asked for. */
static void asked_by_range(void **state)
{
    const uint64_t a = base + 0xd00000000u - 2 * PAGE; /* across two leaves */
    uint8_t t[6];
    (void)state;
    start("first-touch", 1);
    assert_int_equal(emu_pages_set(a, PAGE, EMU_PM, NULL), 0);
    memset(t, 7, sizeof(t));
    assert_int_equal(emu_pages_tiers(a, 5 * PAGE, t), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(t[i], EMU_PAGE_UNUSED);
    assert_int_equal(t[5], 7);
    assert_true(in_use[EMU_DRAM] == 0 && in_use[EMU_PM] == 0);
    (void)emu_tier_of(a);
    (void)emu_tier_of(a + 2 * PAGE);
    (void)emu_tier_of(a + 4 * PAGE);
    assert_int_equal(emu_pages_tiers(a + PAGE - 1, 3 * PAGE + 2, t), 0); /* touches five */
    assert_memory_equal(t, "\1\xff\0\xff\1\7", 6);
    memset(t, 7, sizeof(t));
    assert_int_equal(emu_pages_tiers(a + 5, 0, t), 0);
    assert_int_equal(t[0], 7);
    assert_int_equal(emu_pages_tiers(UINT64_MAX - PAGE, 2, t), -EINVAL);
    assert_int_equal(emu_pages_tiers((1ull << 48) - PAGE, PAGE + 1, t), -EINVAL);
    emu_pages_clear(a, 5 * PAGE);
}

static void named_and_full(void **state)
{
    const uint64_t a = base + (2u << 30);
    uint64_t moved = 99;
    (void)state;
    start("pm", 3);
    assert_int_equal(emu_pages_set(a, 5 * PAGE, EMU_DRAM, &moved), 0);
    assert_int_equal(moved, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(emu_tier_of(a + i * PAGE), i < 3 ? EMU_DRAM : EMU_PM);
    /* Down goes always, up as far as there is room. */
    assert_int_equal(emu_pages_set(a, 2 * PAGE, EMU_PM, &moved), 0);
    assert_int_equal(moved, 2);
    assert_int_equal(emu_pages_set(a, 5 * PAGE, EMU_DRAM, &moved), 0);
    assert_int_equal(moved, 2);
    assert_true(in_use[EMU_DRAM] == 3 && in_use[EMU_PM] == 2);
    assert_true(moved_pages == 4 && left_pages == 4);
    emu_pages_clear(a, 5 * PAGE);
}

static void interleaved(void **state)
{
    const uint64_t a = base + (3u << 30);
    unsigned dram = 0;
    (void)state;
    start("interleave:3:1", INT64_MAX);
    for (int i = 0; i < 400; i++)
        dram += emu_tier_of(a + i * PAGE) == EMU_DRAM;
    assert_int_equal(dram, 300);
    emu_pages_clear(a, 400 * PAGE);
}

static void mremap_takes_media_along(void **state)
{
    const uint64_t a = base + 0x100000000u, b = a + 0x100000000u;
    (void)state;
    start("dram", INT64_MAX);
    assert_int_equal(emu_pages_set(a, 2 * PAGE, EMU_PM, NULL), 0);
    (void)emu_tier_of(a + PAGE);
    (void)emu_tier_of(b + PAGE); /* replaced */
    assert_true(in_use[EMU_DRAM] == 1 && in_use[EMU_PM] == 1);
    emu_pages_move(a, 2 * PAGE, b, 4 * PAGE);
    assert_true(in_use[EMU_DRAM] == 0 && in_use[EMU_PM] == 1);
    assert_int_equal(emu_tier_of(a), EMU_DRAM);
    for (int i = 0; i < 4; i++)
        assert_int_equal(emu_tier_of(b + i * PAGE), EMU_PM);
    emu_pages_move(b, 4 * PAGE, b, PAGE); /* shrunk in place */
    assert_int_equal(in_use[EMU_PM], 1);
    assert_int_equal(emu_tier_of(b + PAGE), EMU_DRAM);
    emu_pages_move(b, PAGE, b, 2 * PAGE); /* grown in place */
    assert_int_equal(emu_pages_look(b, NULL), EMU_PM);
}

/* Whole leaves that nobody uses are named at once; parts of them apart. */
static void huge_reservations(void **state)
{
    const uint64_t leaf = 1ull << 32, a = base + 0x1000000000u, n = 64 * leaf;
    (void)state;
    start("dram", INT64_MAX);
    assert_int_equal(emu_pages_set(a, n, EMU_PM, NULL), 0);
    assert_int_equal(emu_pages_look(a + n - PAGE, NULL), EMU_PM);
    assert_int_equal(emu_pages_look(a + n, NULL), EMU_DRAM);
    assert_int_equal(emu_tier_of(a + 3 * leaf), EMU_PM);
    assert_int_equal(emu_tier_of(a + 3 * leaf + 5 * PAGE), EMU_PM);
    emu_pages_clear(a + 7 * leaf + PAGE, 2 * PAGE);
    assert_int_equal(emu_tier_of(a + 7 * leaf + PAGE), EMU_DRAM);
    assert_int_equal(emu_tier_of(a + 7 * leaf), EMU_PM);
    assert_int_equal(emu_tier_of(a + 7 * leaf + 3 * PAGE), EMU_PM);
    emu_pages_discard(a, n);
    assert_int_equal(in_use[EMU_DRAM] + in_use[EMU_PM], 0);
    assert_int_equal(emu_tier_of(a + 3 * leaf), EMU_PM);
    emu_pages_clear(a, n);
    assert_int_equal(in_use[EMU_DRAM] + in_use[EMU_PM], 0);
    for (uint64_t i = 0; i < n; i += leaf)
        assert_int_equal(emu_tier_of(a + i), EMU_DRAM);
    emu_pages_clear(a, n);
}

static void fork_gives_nothing_back(void **state)
{
    const uint64_t a = base + 0x500000000u;
    (void)state;
    start("dram", INT64_MAX);
    (void)emu_tier_of(a);
    emu_pages_forked();
    memset(in_use, 0, sizeof(in_use)); /* the child's own counts */
    assert_int_equal(emu_tier_of(a), EMU_DRAM);
    (void)emu_tier_of(a + PAGE);
    emu_pages_clear(a, 2 * PAGE);
    assert_int_equal(in_use[EMU_DRAM], 0);
    (void)emu_tier_of(a);
    assert_int_equal(in_use[EMU_DRAM], 1);
}

static void placements_by_name(void **state)
{
    static const char *const wrong[] = {"",
                                        "disk",
                                        "interleave:",
                                        "interleave3",
                                        "interleave:1:",
                                        "interleave:0:0",
                                        "interleave:1:2:3",
                                        "interleave:1001:1",
                                        "pm ",
                                        "interleave:-1:1"};
    struct emu_place p = {9, 9};
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(emu_place_parse(wrong[i], &p), -EINVAL);
        assert_true(p.dram == 9 && p.pm == 9);
    }
    assert_int_equal(emu_place_parse("interleave", &p), 0);
    assert_true(p.dram == 1 && p.pm == 1);
    assert_int_equal(emu_place_parse("interleave:0:1000", &p), 0);
    assert_true(p.dram == 0 && p.pm == 1000);
}

/* DRAM is the machine's: what one process has the other cannot have, until it is gone. */
static void room_is_shared(void **state)
{
    struct emu_machine *m = calloc(1, sizeof(*m));
    struct emu_process *a = &m->process[0], *b = &m->process[63];
    (void)state;
    assert_int_equal(emu_room_free(m), INT64_MAX);
    m->params.dram_bytes = 10 * EMU_ROOM_PAGE + 100;
    assert_int_equal(emu_room_free(m), 10 * EMU_ROOM_PAGE);
    atomic_store(&a->pid, 1);
    atomic_store(&b->pid, 2);
    for (int i = 0; i < 10; i++)
        assert_true(emu_room_take(m, i % 3 ? a : b, EMU_DRAM));
    assert_false(emu_room_take(m, a, EMU_DRAM));
    assert_false(emu_room_take(m, b, EMU_DRAM));
    assert_true(emu_room_take(m, b, EMU_PM));
    assert_int_equal(emu_room_used(m, EMU_DRAM), 10);
    assert_int_equal(emu_room_free(m), 0);
    emu_room_give(a, EMU_DRAM);
    assert_int_equal(emu_room_free(m), EMU_ROOM_PAGE);
    assert_true(emu_room_take(m, b, EMU_DRAM));
    assert_int_equal(b->count[EMU_C_dram_pages], 5);
    atomic_store(&b->pid, 0); /* dead: five pages are free again */
    for (int i = 0; i < 5; i++)
        assert_true(emu_room_take(m, a, EMU_DRAM));
    assert_false(emu_room_take(m, a, EMU_DRAM));
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(first_touch),
        cmocka_unit_test(unnamed),
        cmocka_unit_test(asked_by_range),
        cmocka_unit_test(named_and_full),
        cmocka_unit_test(interleaved),
        cmocka_unit_test(mremap_takes_media_along),
        cmocka_unit_test(huge_reservations),
        cmocka_unit_test(fork_gives_nothing_back),
        cmocka_unit_test(placements_by_name),
        cmocka_unit_test(room_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
