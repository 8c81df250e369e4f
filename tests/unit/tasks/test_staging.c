/* SPDX-License-Identifier: BSD-2-Clause
 * The engine: what tasks tell makes data come and go, on tiers that are the test's own. Each object
 * is a block of BLOCK pages; all time is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define BLOCK         64u
#define BLOCKS        16u
#define BASE          ((uintptr_t)0x10000000)
#define MS            1000000u
#define TIERS_PAGES   (BLOCKS * BLOCK)
#define TIERS_DRAM    (3 * BLOCK)
#define TIERS_MOVE_NS 1000u

#include "stage_tiers.h"
#include "tasks/events.h"
#include "tasks/rules/task_account.h"

static uint64_t now, moves, harm;

bool __wrap_heap_block_of(const void *p, uintptr_t *ret_base, size_t *ret_bytes);
bool __wrap_heap_block_of(const void *p, uintptr_t *ret_base, size_t *ret_bytes)
{
    uintptr_t number = ((uintptr_t)p - BASE) / (BLOCK * HY_PAGE);
    *ret_base = BASE + number * BLOCK * HY_PAGE;
    *ret_bytes = BLOCK * HY_PAGE;
    return number < BLOCKS;
}

uint64_t __wrap_emulator_clock_ns(void);
uint64_t __wrap_emulator_clock_ns(void)
{
    return now;
}

static uint64_t now_ns(void)
{
    return now;
}

static uint64_t nothing(void)
{
    return 0;
}

static bool move(void *base, unsigned pages, enum hy_tier to)
{
    bool moved = tiers_move(base, pages, to);
    now += moved ? pages * TIERS_MOVE_NS : 0;
    moves += moved;
    return moved;
}

static const struct staging_host host = {
    .now_ns = now_ns, .spent_ns = nothing, .move = move, TIERS_HOST};

/* --- what programs do ------------------------------------------------------------------------ */

static unsigned dram_of(unsigned block)
{
    unsigned n = 0;
    for (unsigned i = 0; i < BLOCK; i++)
        n += tier_of[block * BLOCK + i] == HY_DRAM;
    return n;
}

static uint64_t make(unsigned block)
{
    struct task_need need = {.address = BASE + block * BLOCK * HY_PAGE, .writes = true};
    uint64_t id = tasks_made(1, &need, 1);
    assert_int_not_equal(id, 0);
    return id;
}

static void serve(void)
{
    for (unsigned i = 0; i < 100 && staging_serve() == 1; i++)
        ;
}

/* One after the other; as long as they take with all on PM, or a quarter of it with all on DRAM. */
static void run(unsigned block, uint64_t pm_ns)
{
    uint64_t id = make(block);
    tasks_began(id);
    serve();
    now += pm_ns - pm_ns * 3 / 4 * dram_of(block) / BLOCK;
    tasks_ended(id);
    serve();
}

/* Enough to know what a task takes while nothing is moved for any. */
static void run_in_quiet(void)
{
    for (unsigned i = 0; i < ACCOUNT_LEAST; i++)
        run(0, 10 * MS);
}

static int begin(void **state)
{
    (void)state;
    memset(tier_of, HY_PM, sizeof(tier_of));
    tiers_base = BASE;
    on_dram = 0;
    now = MS;
    staging_open(&host);
    (void)tasks_function((const void *)(uintptr_t)begin);
    return 0;
}

static int end(void **state)
{
    (void)state;
    staging_close();
    staging_child();
    return 0;
}

static unsigned held, held_block;

static void hold(void *base, size_t bytes)
{
    held += (unsigned)(bytes / HY_PAGE);
    held_block = (unsigned)(((uintptr_t)base - BASE) / HY_PAGE / BLOCK);
}

static unsigned holds(void)
{
    held = 0;
    staging_each(hold);
    return held;
}

static void the_next_tasks_data_come(void **state)
{
    (void)state;
    run_in_quiet();
    uint64_t runs = make(1), next = make(2);
    tasks_began(runs);
    serve();
    assert_int_equal(dram_of(2), BLOCK);
    (void)next;
}

/* Page histories may have what no task needs any more, and no sooner. */
static void what_is_staged_is_held_until_its_task_ends(void **state)
{
    (void)state;
    run_in_quiet();
    uint64_t first = make(1), next = make(2);
    tasks_began(first);
    serve();
    tasks_ended(first);
    assert_int_equal(dram_of(2), BLOCK);
    serve();
    assert_true(holds() >= BLOCK && held_block == 2);
    tasks_began(next);
    serve();
    assert_true(holds() >= BLOCK && held_block == 2);
    now += 3 * MS;
    tasks_ended(next);
    serve();
    assert_int_equal(dram_of(2), BLOCK);
    assert_int_equal(holds(), 0);
    (void)make(2); /* and again */
    serve();
    assert_int_equal(holds(), BLOCK);
}

static void data_come_for_a_task_that_has_just_begun(void **state)
{
    (void)state;
    run_in_quiet();
    run(1, 10 * MS);
    uint64_t runs = make(2);
    tasks_began(runs);
    serve();
    assert_int_equal(dram_of(2), BLOCK);
    tasks_ended(runs);
    uint64_t old = make(3);
    tasks_began(old);
    now += 10 * MS - BLOCK * TIERS_MOVE_NS; /* too late */
    serve();
    assert_int_equal(dram_of(3), 0);
}

/* Each task takes twice as long once anything was moved for one, as if its data had gone for good.
 */
static void what_costs_all_tasks_more_than_it_brings_one_ends(void **state)
{
    uint64_t plain = 0, lost = 0;
    (void)state;
    run_in_quiet();
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t id = make(i % BLOCKS), before = now, old = moves;
        tasks_began(id);
        serve();
        now = before + 10 * MS;
        if (moves > old)
            harm = now + 100 * MS;
        if (now < harm)
            now += 10 * MS;
        tasks_ended(id);
        serve();
        plain += 10 * MS;
        lost += now - before - 10 * MS;
    }
    assert_true(lost > 0); /* it was tried */
    assert_true((double)lost < 0.03 * (double)plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_next_tasks_data_come, begin, end),
        cmocka_unit_test_setup_teardown(what_is_staged_is_held_until_its_task_ends, begin, end),
        cmocka_unit_test_setup_teardown(data_come_for_a_task_that_has_just_begun, begin, end),
        cmocka_unit_test_setup_teardown(what_costs_all_tasks_more_than_it_brings_one_ends, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
