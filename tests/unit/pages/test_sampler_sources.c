/* SPDX-License-Identifier: BSD-2-Clause
 * The sampler with its real sources: the emulated machine's samples, and the kernel's own tracking
 * of real stores where it exists. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <emu/pmemu.h>

#include "sampler_util.h"
#include "sys/pages/track.h"

/* --- the emulated machine's: found because the program exports it ----------------------- */

#define EXPORT __attribute__((visibility("default")))
#define SLOTS  4096u

static struct pmemu_ring *ring;

EXPORT int pmemu_samples_open(unsigned events, uint64_t period, size_t bytes,
                              struct pmemu_ring **ret)
{
    assert_int_equal(events, PMEMU_SAMPLE_READS | PMEMU_SAMPLE_WRITES);
    assert_true(bytes >= sizeof(*ring) + SLOTS * sizeof(struct pmemu_sample));
    if (ring)
        return -EBUSY;
    ring = calloc(1, sizeof(*ring) + SLOTS * sizeof(struct pmemu_sample));
    ring->slots = SLOTS;
    ring->period = period;
    *ret = ring;
    return 0;
}

EXPORT void pmemu_samples_close(void)
{
    free(ring);
    ring = NULL;
}

/* The program reads page 10 to 19 and writes 20 to 29. */
static void run_emulated(void)
{
    for (unsigned i = 0; i < 200; i++) {
        struct pmemu_sample *at = &ring->slot[ring->head % SLOTS];
        unsigned page = 10 + i % 20;
        *at = (struct pmemu_sample){.address = PAGE_OF(page) * HY_PAGE + i * 8,
                                    .store = page >= 20,
                                    .source = page >= 20 ? PMEMU_FROM_LLC : PMEMU_FROM_PM,
                                    .dirtied = page >= 20};
        at->ready = ++ring->head;
    }
}

static void the_emulated_machines_samples(void **state)
{
    struct pass_stats stats = {0};
    uint64_t totals[HY_TIERS][BANDS], on[HY_TIERS];
    (void)state;
    open_with(&sampler_emulated, NULL);
    assert_string_equal(sampler_source_name(true), "emulated-samples");
    assert_string_equal(sampler_source_name(false), "emulated-samples");
    assert_int_equal(sampler_add(BASE, 2 * MIB, HY_PM, false), 0);
    struct worth_rule rule = {4, 40, 1};
    for (int i = 0; i < 8; i++) {
        sampler_price(&rule);
        sampler_begin(UINT64_MAX);
        for (unsigned r = 0; r < HISTORY_ROUNDS; r++) {
            run_emulated();
            sampler_round(r);
        }
        sampler_end(&stats);
    }
    assert_int_equal(ring->tail, ring->head); /* all were read */
    assert_int_equal(stats.predicted[WD_FREQ_H], 10);
    sampler_totals(totals, on);
    assert_int_equal(totals[HY_PM][BAND_H_HOT], 10);
    assert_int_equal(totals[HY_PM][BAND_HOT_RD], 10);
    assert_int_equal(totals[HY_PM][BAND_REST], 492);
    /* A page that has moved is judged by what it is used for from then on, not by what it was
     * chosen for. */
    sampler_moved((void *)(PAGE_OF(12) * HY_PAGE), HY_PAGE, HY_DRAM, SAMPLER_MOVED);
    run_emulated();
    sampler_begin(UINT64_MAX);
    sampler_end(&stats);
    assert_int_equal(sampler_gain(), 0);
    sampler_begin(UINT64_MAX);
    run_emulated();
    sampler_round(0);
    sampler_end(&stats);
    assert_int_equal(sampler_gain(), 10 * 4);
    sampler_moved((void *)(PAGE_OF(12) * HY_PAGE), HY_PAGE, HY_PM, SAMPLER_MOVED);
    sampler_begin(UINT64_MAX);
    run_emulated();
    sampler_round(0);
    sampler_end(&stats);
    assert_int_equal(sampler_gain(), 0); /* it is back where it was */
    sampler_close();
    assert_null(ring);
}

/* --- the kernel's ------------------------------------------------------------------- */

#define PAGES 4096u

static char *memory;
static bool stop;

static void *write_quarter(void *arg)
{
    uint64_t round = 0;
    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        round++;
        for (unsigned i = PAGES / 4; i < PAGES / 2; i++)
            __atomic_store_n((uint64_t *)(memory + (size_t)i * HY_PAGE), round, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* A child, which goes on by itself. */
static void fork_in_between(void)
{
    int status;
    sampler_prefork();
    pid_t pid = fork();
    sampler_postfork();
    if (pid == 0) {
        bool ok = sampler_reopen() == 0 && sampler_blocks() == PAGES / HISTORY_BLOCK;
        struct pass_stats mine = pass();
        _exit(ok && mine.observed > 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void real_stores(const struct sampler_source *source)
{
    const struct sampler_source *list[] = {source, NULL};
    struct predictor p = predictor_of(PREDICT_WINDOW);
    struct pass_stats stats = {0};
    pthread_t thread;
    if (sampler_open(list, &p, 1) != 0) {
        print_message("%s: not on this kernel\n", source->name);
        skip();
    }
    memory =
        mmap(NULL, PAGES * HY_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    os_no_huge_pages(memory, PAGES * HY_PAGE);
    memset(memory, 0, PAGES * HY_PAGE);
    assert_int_equal(sampler_add(memory, PAGES * HY_PAGE, HY_PM, false), 0);
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, write_quarter, NULL), 0);
    for (int i = 0; i < 10; i++) {
        sampler_begin(UINT64_MAX);
        for (unsigned r = 0; r < HISTORY_ROUNDS; r++) {
            /* the thread comes round once, however slow this machine is */
            uint64_t *last = (uint64_t *)(memory + (size_t)(PAGES / 2 - 1) * HY_PAGE);
            uint64_t was = __atomic_load_n(last, __ATOMIC_RELAXED);
            while (__atomic_load_n(last, __ATOMIC_RELAXED) < was + 2)
                usleep(100);
            sampler_round(r);
        }
        sampler_end(&stats);
        if (i == 4)
            fork_in_between();
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    printf("%s: %lu of %u pages watched, %lu groups, %lu WD_FREQ_H\n", source->name, stats.watched,
           PAGES, stats.groups, stats.predicted[WD_FREQ_H]);
    assert_int_equal(stats.predicted[WD_FREQ_H], PAGES / 4);
    assert_int_equal(stats.predicted[UN_WD], 3 * PAGES / 4);
    struct move_limits l = {.swaps = UINT64_MAX,
                            .clear = UINT64_MAX,
                            .dram_pages = PAGES,
                            .moves = PAGES,
                            .margin = MOVE_MARGIN};
    struct page_move move[64];
    size_t bytes = 0;
    unsigned n = sampler_moves(&l, 1 << 20, move, 64, NULL);
    for (unsigned i = 0; i < n; i++) {
        assert_true((char *)move[i].base >= memory + PAGES / 4 * HY_PAGE);
        assert_true((char *)move[i].base + move[i].bytes <= memory + PAGES / 2 * HY_PAGE);
        bytes += move[i].bytes;
    }
    assert_int_equal(bytes, PAGES / 4 * HY_PAGE);
    sampler_remove(memory, PAGES * HY_PAGE);
    munmap(memory, PAGES * HY_PAGE);
    sampler_close();
}

static void real_stores_by_scan(void **state)
{
    (void)state;
    real_stores(&sampler_scan);
}

static void real_stores_by_soft_dirty(void **state)
{
    (void)state;
    real_stores(&sampler_soft_dirty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_emulated_machines_samples),
        cmocka_unit_test(real_stores_by_scan),
        cmocka_unit_test(real_stores_by_soft_dirty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
