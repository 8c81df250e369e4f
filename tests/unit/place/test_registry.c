/* SPDX-License-Identifier: BSD-2-Clause
 * Participants of one registry: what they see of each other and the shared budget.
 * test_registry_lives.c has how they come and go, test_registry_hostile.c the bad files. */
#include "place/registry_internal.h"
#include "registry_other.h"
#include "rounds.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sched.h>

static void test_new_file_is_private_and_empty(void **state)
{
    struct stat st;
    struct registry *r = open_or_fail(BUDGET);

    (void)state;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, REGISTRY_BYTES);
    assert_false(registry_joined(r));
    registry_read(r, &view);
    assert_int_equal(view.n, 0);
    assert_int_equal(view.dram_budget, BUDGET);
    registry_close(r);
}

static void test_default_path_is_per_user(void **state)
{
    char got[64], want[64];

    (void)state;
    snprintf(want, sizeof(want), "/dev/shm/libhybrid-%u.%u", (unsigned)geteuid(), REGISTRY_VERSION);
    registry_default_path(got, sizeof(got));
    assert_string_equal(got, want);
}

/* No two fields alike. */
static const struct registry_published published = {
    .cls = HY_CLASS_BANDWIDTH,
    .threads = 17,
    .cap = 4,
    .confidence = 1000,
    .slowdown = 5200,
    .placed_slowdown = 1100,
    .pm_bytes = 5 * MB,
    .wish_bytes = 11 * MB,
    .asked_bytes = 13 * MB,
    .promoted_bytes = 19 * MB,
    .demoted_bytes = 23 * MB,
    .written_bytes = 29 * MB,
    .tracked_bytes = 31 * MB,
    .arrived_ns = 37 * MB,
    .marks = REGISTRY_WRITES | REGISTRY_ON_PM,
    .ebw_dram = 37,
    .ebw_pm = 41,
    .pm_written = 430,
    .writers = 4700,
    .writers_free = 8000,
    .held = 5300,
    .hindered = 1590,
    .paced = 4,
    .own_best = 8,
    .paced_for = 61,
    .paced_since = 67,
    .time_at = {9000, 7000, 5000, 4000, 3000, 2000, 1500, 1100},
    .curve_bytes = 71 * MB,
    .curve_dram = 73 * MB,
    .curve_takes = 77 * MB,
    .need_bytes = 79 * MB,
    .run_ns = 83 * MB,
    .curve_now = 3300,
    .weight = 250,
    .move_ns = 3700,
    .cache_class = 2,
    .cache_ways = 4};

static void test_all_that_is_published_is_read(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct other o = other_start(7 * MB);
    char name[16] = "";

    (void)state;
    assert_int_equal(prctl(PR_GET_NAME, name), 0); /* as ps shows it */
    uint64_t before = os_now_ns();
    assert_int_equal(registry_claim_dram(r, 3 * MB), 0);
    registry_publish(r, &published);
    registry_read(r, &view);
    assert_int_equal(view.n, 2);
    const struct registry_entry *me = entry_of(getpid()), *he = entry_of(o.pid);
    assert_non_null(me);
    assert_true(me->is_self);
    assert_int_equal(me->dram_bytes, 3 * MB);
    assert_memory_equal(&me->published, &published, sizeof(published));
    assert_int_equal(me->cpus[0], 0);
    registry_publish_cpus(r, (const uint64_t[REGISTRY_CPU_WORDS]){5, [5] = 1ull << 63});
    registry_read(r, &view);
    assert_int_equal(view.entry[0].cpus[0], 5);
    assert_true(view.entry[0].cpus[5] == 1ull << 63);
    assert_string_equal(me->name, name);
    assert_true(me->heartbeat_ns >= before && me->heartbeat_ns <= os_now_ns());
    assert_non_null(he);
    assert_false(he->is_self);
    assert_int_equal(he->published.cls, HY_CLASS_CPU);
    assert_int_equal(he->dram_bytes, 7 * MB);
    other_end(&o);
    registry_close(r);
}

/* In another container somebody may have our number. */
static void test_cpus_of_our_number_elsewhere(void **state)
{
    struct cpus_of_others found;

    (void)state;
    memset(&view, 0, sizeof(view));
    view.n = 2;
    view.entry[0] = (struct registry_entry){
        .slot = 3, .pid = getpid(), .cpus = {6}, .heartbeat_ns = os_now_ns()};
    view.entry[1] =
        (struct registry_entry){.slot = 4, .pid = getpid(), .here = true, .is_self = true};
    registry_cpus_of_others(&view, &found);
    assert_int_equal(found.confined, 1);
    assert_int_equal(found.all.word[0], 6);
    assert_int_equal(found.elders.word[0], 6); /* one of the two gives way, never both */
    view.entry[0].slot = 5;
    registry_cpus_of_others(&view, &found);
    assert_int_equal(found.elders.word[0], 0);
    view.entry[0].heartbeat_ns -= (uint64_t)60 * 1000000000; /* stopped: it needs none */
    registry_cpus_of_others(&view, &found);
    assert_int_equal(found.confined + found.all.word[0], 0);
    view.entry[0].heartbeat_ns = os_now_ns();
    view.entry[0].here = true; /* what we were before exec */
    registry_cpus_of_others(&view, &found);
    assert_int_equal(found.confined, 0);
}

static void test_claims_stay_within_the_budget(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);

    (void)state;
    errno = 4711;
    assert_int_equal(registry_claim_dram(r, 60 * MB), 0);
    assert_int_equal(registry_claim_dram(r, 40 * MB + 1), -ENOSPC);
    assert_int_equal(registry_claim_dram(r, UINT64_MAX), -ENOSPC);
    assert_int_equal(registry_claim_dram(r, 40 * MB), 0);
    assert_int_equal(registry_claim_dram(r, 1), -ENOSPC);
    registry_return_dram(r, 10 * MB);
    assert_int_equal(registry_claim_dram(r, 10 * MB + 1), -ENOSPC);
    registry_read(r, &view);
    assert_int_equal(view.entry[0].dram_bytes, 90 * MB);
    registry_return_dram(r, UINT64_MAX); /* more than we hold: nothing is left, not less */
    assert_int_equal(registry_claim_dram(r, BUDGET), 0);
    assert_int_equal(registry_claim_dram(r, 1), -ENOSPC);
    assert_int_equal(errno, 4711);
    registry_close(r);
}

static void test_without_joining_nothing_is_claimed(void **state)
{
    struct registry *r = open_or_fail(BUDGET);

    (void)state;
    assert_int_equal(registry_claim_dram(r, 1), -ENOTCONN);
    registry_return_dram(r, 1);
    registry_publish(r, &(struct registry_published){.cls = HY_CLASS_CPU, .pm_bytes = 1});
    registry_leave(r);
    registry_read(r, &view);
    assert_int_equal(view.n, 0);
    registry_close(r);
}

static void test_processes_share_one_budget(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);
    struct other o = other_start(60 * MB);

    (void)state;
    assert_int_equal(registry_claim_dram(r, 41 * MB), -ENOSPC);
    assert_int_equal(registry_claim_dram(r, 40 * MB), 0);
    other_order(&o, ORDER_LEAVE);
    assert_int_equal(registry_claim_dram(r, 60 * MB), 0);
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    other_end(&o);
    registry_close(r);
}

static void test_the_first_participant_sets_the_budget(void **state)
{
    struct registry *first = open_and_join(50 * MB, HY_CLASS_CPU);
    struct registry *second = open_and_join(90 * MB, HY_CLASS_CPU);

    (void)state;
    registry_read(second, &view);
    assert_int_equal(view.dram_budget, 50 * MB);
    registry_leave(first);
    assert_int_equal(registry_join(first, HY_CLASS_CPU), 0); /* the second one lives */
    registry_read(second, &view);
    assert_int_equal(view.dram_budget, 50 * MB);
    registry_leave(second);
    registry_close(first);
    assert_int_equal(registry_join(second, HY_CLASS_CPU), 0); /* now it is the first */
    assert_int_equal(registry_claim_dram(second, 90 * MB), 0);
    registry_close(second);
    struct registry *third = open_or_fail(UINT64_MAX);
    registry_read(third, &view);
    assert_int_equal(view.dram_budget, REGISTRY_MAX_BYTES);
    registry_close(third);
}

/* All but one slot are held by one living process, the last by a dead one. */
static void test_full_of_living_ones(void **state)
{
    struct registry *r = open_or_fail(BUDGET);
    struct reg_file *f = map_to_write();
    pid_t pid = sleeper(), dying = sleeper();

    (void)state;
    for (int i = 0; i < REGISTRY_SLOTS; i++)
        f->slot[i].word = word_of(i == 77 ? dying : pid, REG_LIVE);
    assert_int_equal(registry_join(r, HY_CLASS_CPU), -EUSERS);
    assert_false(registry_joined(r));
    end_sleeper(dying);
    assert_int_equal(registry_join(r, HY_CLASS_CPU), 0);
    registry_read(r, &view);
    assert_int_equal(view.n, REGISTRY_SLOTS);
    assert_true(view.entry[77].is_self);
    end_sleeper(pid);
    registry_read(r, &view);
    assert_int_equal(view.n, 1);
    unmap_raw(f);
    registry_close(r);
}

#define THREADS 4
#define ROUNDS  20000

static struct registry *of_threads;
static uint64_t held_by_threads, worst;

/* What is held is counted after the claim and before the return, so the count
 * is never more than what the registry granted. */
static void *claim_and_return(void *arg)
{
    uint64_t seed = *(const uint64_t *)arg;

    for (unsigned i = 0; i < rounds(ROUNDS); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bytes = (seed >> 33) % (BUDGET / 2);
        if (registry_claim_dram(of_threads, bytes) != 0)
            continue;
        uint64_t held = __atomic_add_fetch(&held_by_threads, bytes, __ATOMIC_SEQ_CST);
        uint64_t seen = __atomic_load_n(&worst, __ATOMIC_SEQ_CST);
        while (held > seen && !__atomic_compare_exchange_n(&worst, &seen, held, false,
                                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            ;
        registry_publish(of_threads, &(struct registry_published){.cls = HY_CLASS_CPU,
                                                                  .pm_bytes = held,
                                                                  .wish_bytes = bytes,
                                                                  .threads = i});
        __atomic_sub_fetch(&held_by_threads, bytes, __ATOMIC_SEQ_CST);
        registry_return_dram(of_threads, bytes);
    }
    return NULL;
}

static void test_threads_claim_at_the_same_time(void **state)
{
    pthread_t t[THREADS];
    uint64_t seed[THREADS];

    (void)state;
    of_threads = open_and_join(BUDGET, HY_CLASS_CPU);
    held_by_threads = worst = 0;
    for (int i = 0; i < THREADS; i++) {
        seed[i] = (uint64_t)i + 1;
        assert_int_equal(pthread_create(&t[i], NULL, claim_and_return, &seed[i]), 0);
    }
    for (int i = 0; i < 200; i++)
        registry_read(of_threads, &view);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_true(worst > 0);
    assert_true(worst <= BUDGET);
    registry_read(of_threads, &view);
    assert_int_equal(view.entry[0].dram_bytes, 0);
    assert_int_equal(registry_claim_dram(of_threads, BUDGET), 0);
    registry_close(of_threads);
}

/* Another thread of ours that gets no CPU is not waited for for ever. */
static void test_what_is_returned_while_nobody_can_enter_is_not_lost(void **state)
{
    struct registry *r = open_and_join(BUDGET, HY_CLASS_CPU);

    (void)state;
    assert_int_equal(registry_claim_dram(r, 30 * MB), 0);
    assert_true(registry_enter(r));
    registry_return_dram(r, 10 * MB); /* gives up after a second */
    registry_exit(r);
    registry_read(r, &view);
    assert_int_equal(view.entry[0].dram_bytes, 20 * MB);
    /* Not twice. */
    registry_return_dram(r, 5 * MB);
    registry_read(r, &view);
    assert_int_equal(view.entry[0].dram_bytes, 15 * MB);
    registry_close(r);
}

/* A thread that outlives the leave must not change the slot's next owner. */
static void *churn(void *stop)
{
    while (!__atomic_load_n((bool *)stop, __ATOMIC_SEQ_CST)) {
        if (registry_claim_dram(of_threads, 3) == 0)
            registry_return_dram(of_threads, 3);
        (void)registry_claim_dram(of_threads, 5);
    }
    return NULL;
}

static void test_leaving_while_threads_claim(void **state)
{
    struct registry *next = open_or_fail(BUDGET);
    struct reg_file *f = map_raw();
    pthread_t t;
    bool stop = false;

    (void)state;
    of_threads = open_and_join(BUDGET, HY_CLASS_CPU);
    assert_int_equal(pthread_create(&t, NULL, churn, &stop), 0);
    for (unsigned i = 0; i < rounds(2000); i++) {
        registry_leave(of_threads);
        uint64_t theirs = REG_LOAD(&f->slot[0].dram);
        assert_int_equal(registry_join(next, HY_CLASS_CPU), 0); /* the same slot */
        /* The race itself is too rare to wait for: the owners differ. */
        assert_true(reg_high16(REG_LOAD(&f->slot[0].dram)) != reg_high16(theirs));
        assert_int_equal(registry_claim_dram(next, 1000), 0);
        registry_return_dram(next, 1000);
        registry_read(next, &view);
        assert_int_equal(view.n, 1);
        assert_int_equal(view.entry[0].dram_bytes, 0);
        registry_leave(next);
        assert_int_equal(registry_join(of_threads, HY_CLASS_CPU), 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
    pthread_join(t, NULL);
    unmap_raw(f);
    registry_close(of_threads);
    registry_close(next);
}

static void test_readonly_looks_and_does_not_touch(void **state)
{
    struct registry *r, *look = NULL;
    static struct reg_file before;

    (void)state;
    assert_int_equal(registry_open_readonly(path, &look), -ENOENT);
    assert_int_equal(access(path, F_OK), -1);
    r = open_and_join(BUDGET, HY_CLASS_LATENCY);
    assert_int_equal(registry_open_readonly(path, &look), 0);
    struct other o = other_start(9 * MB);
    registry_read(look, &view); /* what came after the opening is seen */
    assert_int_equal(view.n, 2);
    assert_int_equal(view.dram_budget, BUDGET);
    assert_int_equal(entry_of(o.pid)->dram_bytes, 9 * MB);
    other_end(&o);
    struct reg_file *f = map_raw();
    memcpy(&before, f, sizeof(before));
    registry_read(look, &view); /* the dead one is not told, and not reclaimed */
    assert_int_equal(view.n, 1);
    assert_int_equal(registry_join(look, HY_CLASS_CPU), -EROFS);
    assert_int_equal(registry_claim_dram(look, 1), -ENOTCONN);
    registry_publish(look, &(struct registry_published){.cls = HY_CLASS_CPU, .pm_bytes = 1});
    assert_memory_equal(&before, f, sizeof(before));
    unmap_raw(f);
    registry_close(look);
    registry_close(r);
}

static void test_read_only_file_system_is_told(void **state)
{
    struct registry *r;
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            _exit(77);
        (void)mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
        if (mount("none", dir, "tmpfs", MS_RDONLY, NULL) != 0)
            _exit(77);
        _exit(registry_open(path, BUDGET, &r) == -EROFS ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("no mount namespace here, so no read-only file system\n");
        skip();
    }
    assert_int_equal(status, 0);
}

int main(void)
{
#define REG_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
    const struct CMUnitTest tests[] = {
        REG_TEST(test_new_file_is_private_and_empty),
        REG_TEST(test_default_path_is_per_user),
        REG_TEST(test_all_that_is_published_is_read),
        REG_TEST(test_cpus_of_our_number_elsewhere),
        REG_TEST(test_claims_stay_within_the_budget),
        REG_TEST(test_without_joining_nothing_is_claimed),
        REG_TEST(test_processes_share_one_budget),
        REG_TEST(test_the_first_participant_sets_the_budget),
        REG_TEST(test_full_of_living_ones),
        REG_TEST(test_threads_claim_at_the_same_time),
        REG_TEST(test_what_is_returned_while_nobody_can_enter_is_not_lost),
        REG_TEST(test_leaving_while_threads_claim),
        REG_TEST(test_readonly_looks_and_does_not_touch),
        REG_TEST(test_read_only_file_system_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
