/* SPDX-License-Identifier: BSD-2-Clause
 * CPUs shared in virtual time: a small scheduler in one thread plays N emulated ones,
 * always the last one next, as the lock-step does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "machine/cpus.h"
#include "model/media.h"

#define US        ((int64_t)1000000)
#define MAX_USERS 64

static struct emu_cpus cpus;
static struct emu_cpu_user user[MAX_USERS];
static int64_t now[MAX_USERS], waited[MAX_USERS], began[MAX_USERS];

static void machine(int count, int users, const char *allowed)
{
    struct emu_cpuset s;
    emu_cpuset_fill(&s, count);
    if (allowed)
        assert_int_equal(emu_cpuset_parse(allowed, count, &s), 0);
    emu_cpus_init(&cpus, count);
    for (int i = 0; i < users; i++) {
        emu_cpus_enter(&cpus, &user[i], &s);
        now[i] = waited[i] = began[i] = 0;
    }
}

/* Among equals, who had to wait most recently: as the clocks have it. */
static int last_one(int users)
{
    int last = 0;
    for (int i = 1; i < users; i++)
        if (now[i] < now[last] || (now[i] == now[last] && began[i] > began[last]))
            last = i;
    return last;
}

static void run(int i, int64_t cost)
{
    int64_t begin = emu_cpus_take(&cpus, &user[i], now[i], cost, false);
    waited[i] += begin - now[i];
    if (begin > now[i])
        began[i] = begin;
    now[i] = begin + cost;
}

/* `work` ps of each thread in batches of `batch`; when the last one is done. */
static int64_t all_done(int users, int64_t work, int64_t batch)
{
    int64_t did[MAX_USERS] = {0}, end = 0;
    for (int left = users; left > 0;) {
        int i = last_one(users);
        run(i, batch);
        did[i] += batch;
        end = now[i] > end ? now[i] : end;
        if (did[i] >= work) {
            emu_cpus_yield(&cpus, &user[i], now[i]);
            now[i] = INT64_MAX;
            left--;
        }
    }
    return end;
}

static void compute_takes_n_over_t(void **state)
{
    static const struct {
        int cpus, users;
        const char *allowed;
        double want;
    } cases[] = {{20, 20, NULL, 1}, {20, 1, NULL, 1},    {1, 8, NULL, 8},
                 {4, 20, NULL, 5},  {20, 8, "0-3", 2},   {20, 3, "5,9", 1.5},
                 {2, 64, NULL, 32}, {20, 64, NULL, 3.2}, {20, 20, "0-18", 20.0 / 19}};
    (void)state;
    for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        for (int64_t batch = 2 * US; batch <= 60 * US; batch += 9 * US) {
            const int64_t work = 400 * (batch > EMU_TURN_PS ? batch : EMU_TURN_PS);
            double ratio;
            machine(cases[k].cpus, cases[k].users, cases[k].allowed);
            ratio = (double)all_done(cases[k].users, work, batch) / (double)work;
            /* 2 %: at the end there are not enough threads for all CPUs. */
            if (ratio < cases[k].want * 0.98 || ratio > cases[k].want * 1.02)
                fail_msg("case %u, batch %d us: %f", k, (int)(batch / US), ratio);
        }
}

static void nobody_waits_with_enough_cpus(void **state)
{
    unsigned x = 1;
    (void)state;
    machine(20, 20, NULL);
    for (int n = 0; n < 20000; n++) {
        int i = last_one(20);
        run(i, 1 + (x = x * 1103515245 + 12345) / 65536 % 20 * US);
        if (x % 16 == 0) { /* blocks for a while */
            emu_cpus_yield(&cpus, &user[i], now[i]);
            now[i] += x % 64 * US;
        }
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(waited[i], 0);
}

/* Threads that settle often get no less than those that settle seldom. */
static void turns_are_fair(void **state)
{
    int64_t did[6] = {0};
    (void)state;
    machine(2, 6, NULL);
    for (int n = 0; n < 200000; n++) {
        int i = last_one(6);
        int64_t cost = i < 3 ? 2 * US : 20 * US;
        run(i, cost);
        did[i] += cost;
    }
    for (int i = 1; i < 6; i++)
        assert_true(did[i] > did[0] * 98 / 100 && did[i] < did[0] * 102 / 100);
}

/* One thread of two is away for nine tenths of its time: the other gets that. */
static void who_is_away_holds_no_cpu(void **state)
{
    int64_t busy = 0;
    (void)state;
    machine(1, 2, NULL);
    while (now[0] < 100000 * US) {
        int i = last_one(2);
        run(i, i == 0 ? 20 * US : 2 * US);
        if (i == 1) {
            emu_cpus_yield(&cpus, &user[1], now[1]);
            now[1] += 18 * US;
        } else {
            busy += 20 * US;
        }
    }
    /* 2 of each 20 + 20 us at least (it waits for a turn in between), 2 of 20 at most. */
    assert_true(busy > now[0] * 89 / 100 && busy < now[0] * 96 / 100);
}

/* A killed thread's turn ends by itself. */
static void a_dead_one_leaves_no_cpu_taken(void **state)
{
    (void)state;
    machine(1, 2, NULL);
    run(0, 2 * US);
    run(1, 20 * US);
    assert_true(waited[1] > 0 && waited[1] <= EMU_TURN_PS);
    for (int n = 0; n < 10; n++)
        run(1, 20 * US);
    assert_true(waited[1] <= EMU_TURN_PS);
}

static void masks_confine_and_move(void **state)
{
    struct emu_cpuset s;
    (void)state;
    machine(8, 2, "2");
    run(0, 20 * US);
    assert_int_equal(user[0].cpu, 2);
    run(1, 20 * US);
    assert_int_equal(waited[1], 20 * US);
    assert_int_equal(emu_cpuset_parse("5-6", 8, &s), 0);
    assert_int_equal(emu_cpus_allow(&cpus, &user[1], &s), 0);
    run(1, 20 * US);
    assert_in_range(user[1].cpu, 5, 6);
    assert_int_equal(waited[1], 20 * US);
    memset(&s, 0, sizeof(s));
    assert_int_equal(emu_cpus_allow(&cpus, &user[1], &s), -EINVAL);
    s.bits[0] = 1 << 8;
    assert_int_equal(emu_cpus_allow(&cpus, &user[1], &s), -EINVAL);
    emu_cpus_allowed(&user[1], &s);
    assert_int_equal(s.bits[0], 0x60);
}

/* Memory-bound threads confined to T CPUs ask for the bandwidth of T. */
static int64_t streamed(enum emu_tier tier, int users, const char *allowed)
{
    static struct emu_media m;
    struct emu_past past[20] = {0};
    struct emu_batch b = {.cpu_ps = 4 * US};
    struct emu_params p;
    struct emu_costs c;
    int64_t work = 0;

    b.stall_ps[tier] = 16 * US;
    b.read_units[tier] = tier == EMU_PM ? 600 : 2000;

    memset(&m, 0, sizeof(m));
    assert_int_equal(emu_params_preset("pram", &p), 0);
    emu_costs_init(&c, &p);
    machine(20, users, allowed);
    while (now[last_one(users)] < 20000 * US) {
        int i = last_one(users);
        int64_t begin = emu_cpus_take(&cpus, &user[i], now[i], 20 * US, false), wait, end;
        end = emu_media_settle(&m, &c, &past[user[i].cpu], begin, &b, &wait);
        emu_cpus_extend(&cpus, &user[i], end - begin - 20 * US);
        now[i] = end;
        work++;
    }
    return work;
}

static void confined_threads_demand_bandwidth_of_their_cpus(void **state)
{
    (void)state;
    for (int k = 2; k <= 16; k++) {
        enum emu_tier tier = k % 2 ? EMU_PM : EMU_DRAM;
        int t = k / 2 * 2;
        const char *allowed[] = {"0-1", "0-3", "0-5", "0-7", "0-9", "0-11", "0-13", "0-15"};
        int64_t few = streamed(tier, t, NULL), many = streamed(tier, 3 * t, allowed[t / 2 - 1]);
        if (many < few * 98 / 100 || many > few * 102 / 100)
            fail_msg("tier %d: %d threads %d, %d confined to as many CPUs %d", tier, t, (int)few,
                     3 * t, (int)many);
    }
}

static void lists_of_cpus_are_read(void **state)
{
    static const char *const bad[] = {
        "", ",", "1,", "-1", "3-1", "a", "1 ", "0x2", "8", "9-12", "99999999999999999999", "1--2"};
    struct emu_cpuset s = {{7}};
    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(emu_cpuset_parse(bad[i], 8, &s), -EINVAL);
    assert_int_equal(s.bits[0], 7);
    assert_int_equal(emu_cpuset_parse("0-2,7", 8, &s), 0);
    assert_int_equal(s.bits[0], 0x87);
    assert_int_equal(emu_cpuset_parse("6-300", 8, &s), 0); /* what there is of it */
    assert_int_equal(s.bits[0], 0xc0);
    assert_int_equal(emu_cpuset_count(&s), 2);
    emu_cpuset_fill(&s, 200);
    assert_int_equal(emu_cpuset_count(&s), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_takes_n_over_t),
        cmocka_unit_test(nobody_waits_with_enough_cpus),
        cmocka_unit_test(turns_are_fair),
        cmocka_unit_test(who_is_away_holds_no_cpu),
        cmocka_unit_test(a_dead_one_leaves_no_cpu_taken),
        cmocka_unit_test(masks_confine_and_move),
        cmocka_unit_test(confined_threads_demand_bandwidth_of_their_cpus),
        cmocka_unit_test(lists_of_cpus_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
