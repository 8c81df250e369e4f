/* SPDX-License-Identifier: BSD-2-Clause
 * Two readers of one ring of samples: both see all of it, the slower one what is left. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/pmemu.h"
#include "sys/pages/emulator_samples.h"

#define SLOTS 64u

static struct pmemu_ring *fake;
static unsigned opened, closed;

/* What the machine exports. */
__attribute__((visibility("default"))) int
pmemu_samples_open(unsigned events, uint64_t period, size_t bytes, struct pmemu_ring **ret);
int pmemu_samples_open(unsigned events, uint64_t period, size_t bytes, struct pmemu_ring **ret)
{
    assert_int_equal(events, PMEMU_SAMPLE_READS | PMEMU_SAMPLE_WRITES);
    assert_true(bytes > 0);
    if (opened > closed)
        return -EBUSY;
    free(fake);
    fake = calloc(1, sizeof(*fake) + SLOTS * sizeof(fake->slot[0]));
    assert_non_null(fake);
    fake->slots = SLOTS;
    fake->period = period;
    opened++;
    *ret = fake;
    return 0;
}

__attribute__((visibility("default"))) void pmemu_samples_close(void);
void pmemu_samples_close(void)
{
    closed++;
}

/* As the machine's threads do. */
static void put(uint64_t address, enum pmemu_source source, bool dirtied)
{
    uint64_t n = fake->head;

    if (n - fake->tail >= SLOTS) {
        fake->lost++;
        return;
    }
    struct pmemu_sample *s = &fake->slot[n % SLOTS];
    fake->head = n + 1;
    s->address = address;
    s->source = (uint8_t)source;
    s->dirtied = dirtied;
    s->ready = n + 1;
}

static uint64_t pages_sum, tap_sum, tap_reads, tap_dirtied;

static unsigned stores;

static void hear_pages(uintptr_t address, bool store)
{
    stores += store;
    pages_sum += address;
}

static void hear_tap(uintptr_t address, bool read, bool dirtied)
{
    tap_sum += address;
    tap_reads += read;
    tap_dirtied += dirtied;
}

static void test_both_see_all(void **state)
{
    (void)state;
    assert_int_equal(emulator_samples_open(64, 1 << 20), 0);
    assert_int_equal(emulator_tap_open(128, 1 << 20), 0);
    assert_int_equal(emulator_tap_open(128, 1 << 20), -EBUSY);
    assert_int_equal(opened, 1);
    assert_int_equal(emulator_tap_period(), 64); /* that of the first */
    put(1, PMEMU_FROM_DRAM, false);
    put(2, PMEMU_FROM_LLC, true);
    put(4, PMEMU_FROM_PM, true);
    assert_int_equal(emulator_samples_drain(hear_pages), 3);
    assert_int_equal(emulator_samples_drain(hear_pages), 0);
    put(8, PMEMU_FROM_DRAM, false);
    assert_int_equal(emulator_tap_drain(hear_tap), 4);
    assert_int_equal(emulator_samples_drain(hear_pages), 1);
    assert_int_equal(pages_sum, 15);
    assert_int_equal(tap_sum, 15);
    assert_int_equal(tap_reads, 3);
    assert_int_equal(tap_dirtied, 2);
    assert_int_equal(emulator_tap_lost(), 0);
}

/* A store that misses is a line read and a line dirtied, and sampled twice as often: it must not
 * count as two writes. One whose line was read before is a write alone. */
static void test_two_events_of_one_store(void **state)
{
    (void)state;
    assert_int_equal(emulator_samples_open(64, 1 << 20), 0);
    stores = 0;
    for (unsigned i = 0; i < 2000; i++) {
        put(1, PMEMU_FROM_PM, true);
        (void)emulator_samples_drain(hear_pages);
    }
    assert_in_range(stores, 900, 1100);
    stores = 0;
    for (unsigned i = 0; i < 100; i++) {
        put(1, PMEMU_FROM_LLC, true);
        put(1, PMEMU_FROM_PM, false);
        (void)emulator_samples_drain(hear_pages);
    }
    assert_int_equal(stores, 100);
    emulator_samples_close();
}

/* One reader lets the writers go on; the other has missed what was overwritten, and knows. */
static void test_slow_reader(void **state)
{
    unsigned got = 0, all = 10 * SLOTS + 7;

    (void)state;
    for (unsigned i = 0; i < all; i++) {
        put(1, PMEMU_FROM_DRAM, false);
        if (i % 16 == 0)
            (void)emulator_samples_drain(hear_pages);
    }
    assert_int_equal(fake->lost, 0);
    for (unsigned n; (n = emulator_tap_drain(hear_tap)) > 0;)
        got += n;
    assert_true(got >= SLOTS / 2 && got <= SLOTS);
    assert_int_equal(got + emulator_tap_lost(), all);
    /* Alone, a full ring loses; that counts as well. */
    emulator_samples_close();
    for (unsigned i = 0; i < 2 * SLOTS; i++)
        put(1, PMEMU_FROM_DRAM, false);
    assert_true(fake->lost > 0);
    uint64_t before = emulator_tap_lost();
    assert_true(before >= fake->lost);
    assert_true(emulator_tap_drain(hear_tap) > 0);
    assert_int_equal(closed, 0);
    emulator_tap_close();
    assert_int_equal(closed, 1);
    assert_int_equal(emulator_tap_drain(hear_tap), 0);
    assert_int_equal(emulator_tap_period(), 0);
    assert_int_equal(emulator_tap_open(1, 4096), 0); /* anew */
    assert_int_equal(emulator_tap_lost(), 0);
    emulator_tap_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_see_all),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_two_events_of_one_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
