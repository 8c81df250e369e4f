/* SPDX-License-Identifier: BSD-2-Clause
 * How much free memory the heaps keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "heap/rules/keep.h"

static void a_part_of_what_is_live_is_kept(void **state)
{
    const struct keep k = {0, 0};
    (void)state;
    assert_int_equal(keep_limit(&k, 0, KEEP_USUAL), HY_MIB / HY_PAGE);
    assert_true(keep_limit(&k, 1 << 20, KEEP_USUAL) > (1 << 20) / 33);
    assert_int_equal(keep_limit(&k, 1 << 20, KEEP_TIGHT), HY_MIB / HY_PAGE);
    assert_int_equal(keep_limit(&k, 1 << 20, KEEP_LITTLE), 0);
    /* Little of it only for requests of one length. */
    assert_in_range(keep_parked_limit(0), 9, HY_MIB / HY_PAGE / 8);
    assert_in_range(keep_parked_limit(1 << 20), 4096, keep_limit(&k, 1 << 20, KEEP_USUAL) / 8);
}

/* Where others need DRAM, little that lies there is kept, and what lies on PM as far as it proved
 * to be needed, but never more than is live. */
static void what_is_nobody_elses_loss_is_kept(void **state)
{
    const struct keep k = {0, 5000};
    (void)state;
    assert_int_equal(keep_limit(&k, 32000, KEEP_LITTLE), 1000);
    assert_int_equal(keep_limit(&k, 32000, KEEP_FAR), 5000);
    assert_int_equal(keep_limit(&k, 3200, KEEP_FAR), 3200);
}

/* A program that frees and takes the same again and again pays for it a few times only. */
static void what_was_given_back_too_early_is_kept_next_time(void **state)
{
    struct keep k = {0, 0};
    uint64_t need = 4096, dirty = 0, fresh = 0;
    (void)state;
    for (int i = 0; i < 100; i++) {
        uint64_t limit, used = HY_MIN(dirty, need);
        if (used < need) {
            keep_note_fresh(&k, need - used, need);
            fresh += need - used;
        }
        limit = keep_limit(&k, 0, KEEP_USUAL);
        dirty = need;
        if (dirty > limit) {
            keep_note_back(&k, dirty - limit);
            dirty = limit;
        }
    }
    assert_true(fresh < 4 * need);
    for (int i = 0; i < 100; i++) /* and forgotten when it is over */
        keep_tick(&k);
    assert_int_equal(keep_limit(&k, 0, KEEP_USUAL), HY_MIB / HY_PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_what_is_live_is_kept),
        cmocka_unit_test(what_is_nobody_elses_loss_is_kept),
        cmocka_unit_test(what_was_given_back_too_early_is_kept_next_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
